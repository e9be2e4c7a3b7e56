// Steps through target words by buttons, a slider and keys.

import { byId } from "./dom.mjs";

/** The keys that step, and how far. */
export const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 };

/** Steps with the controls `<prefix>-previous`, `-next`, `-slider`, and the keys pressed in `<prefix>-stage`.
 *
 * @param show shows a step: (step) => text for the slider
 * @param keys other keys: {name: function}
 * @returns {{go, last, step}} `go(step, last)` shows a step; `last`, if given, becomes the last step
 */
export function stepper(prefix, show, keys = {}) {
  const [stage, previous, next, slider] = ["stage", "previous", "next", "slider"].map((name) =>
    byId(`${prefix}-${name}`),
  );
  const state = { step: 0, last: 0, go };

  function go(step, last = state.last) {
    state.last = last;
    state.step = Math.max(0, Math.min(step, last));
    slider.max = last;
    slider.value = state.step;
    previous.disabled = state.step === 0;
    next.disabled = state.step === last;
    slider.setAttribute("aria-valuetext", show(state.step));
  }
  previous.addEventListener("click", () => go(state.step - 1));
  next.addEventListener("click", () => go(state.step + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea"))
      return;
    if (Object.hasOwn(STEPS, event.key)) go(state.step + STEPS[event.key]);
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  });
  return state;
}

/** Calls `redraw` whenever the width of an element has changed. */
export function onResize(element, redraw) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(element.clientWidth - width) < 8) return;
    width = element.clientWidth;
    redraw();
  }).observe(element);
}
