// With many lines, a chart shows a few in colour and the others in grey; buttons in a table choose them.

import { MANY } from "./charts.mjs";
import { h } from "./dom.mjs";
import { COLOURS, sample } from "./plots.mjs";

const GREY = { colour: COLOURS, variant: 0 };

/** The names that are in colour at first: the best and the worst curve, and the two that get worse most.
 *
 * @param curves rows {series, words, value} of one score, in the order of their lengths
 * @param higher whether a higher value is better
 */
export function chosen(curves, higher) {
  const values = new Map();
  for (const { series, value } of curves) values.set(series, [...(values.get(series) ?? []), value]);
  const names = [...values.keys()];
  const sign = higher ? 1 : -1;
  const mean = (name) => values.get(name).reduce((a, b) => a + b, 0) / values.get(name).length;
  const kept = (name) => values.get(name).at(-1) / values.get(name)[0];
  const by = (order) => [...names].sort((a, b) => sign * (order(a) - order(b)));
  const ranked = by(mean);
  return [...new Set([ranked.at(-1), ranked[0], ...by(kept).slice(0, 2)])];
}

/** Returns {lit, look, toggle}: whether a name is in colour, its look, and the switch of its colour.
 *
 * @param first names in colour at first; if none of them is in `names`, the first `MANY` names
 */
export function spotlight(names, first, look) {
  if (names.length <= MANY) return { lit: () => true, look, toggle: () => false };
  const on = first.filter((name) => names.includes(name));
  if (!on.length) on.push(...names.slice(0, MANY));
  const place = (name) => on.indexOf(name);
  return {
    lit: (name) => on.includes(name),
    look: (name) =>
      on.includes(name)
        ? { colour: place(name) % COLOURS, variant: Math.floor(place(name) / COLOURS) }
        : GREY,
    toggle(name) {
      const free = on.indexOf(null);
      if (on.includes(name)) on[place(name)] = null;
      else on[free < 0 ? on.length : free] = name; // all other lines keep their colours
      return true;
    },
  };
}

/** Makes a table the legend of a chart: its first column gets a button with a sample of each line, which
 * switches the line's colour on and off. Pointing at or focusing a row calls `hovered` with its name. */
export function markRows(table, light, names, { switched, hovered }) {
  for (const row of table.tBodies[0].rows) {
    const heading = row.cells[0];
    const name = heading.dataset.name ?? heading.textContent;
    heading.dataset.name = name;
    if (!names.includes(name)) continue;
    row.onpointerenter = () => hovered(name);
    row.onpointerleave = () => hovered("");
    const button = h(
      "button",
      {
        type: "button",
        class: "line",
        "aria-pressed": String(light.lit(name)),
        title: `Show ${name} in colour`,
        onclick: () => light.toggle(name) && switched(),
        onfocus: () => hovered(name),
        onblur: () => hovered(""),
      },
      sample(light.look(name)),
      h("span", { text: name }),
    );
    const focused = heading.contains(document.activeElement);
    heading.replaceChildren(button);
    if (focused) button.focus();
  }
}
