// Lecture mode: a translation in large letters, word by word, and the step's numbers in its equations.

import { expectationText, largest } from "../alignment.mjs";
import { byId, h } from "../dom.mjs";
import { fixed } from "../format.mjs";
import { STEPS } from "../stepper.mjs";

const SCORES = {
  additive: "v_aᵀ tanh(W_a s_{i−1} + U_a h_j)",
  dot: "(W_a s_{i−1})ᵀ U_a h_j",
  scaled_dot: "(W_a s_{i−1})ᵀ U_a h_j / √n′",
};

/** A formula as nodes: `_x` and `_{xy}` are subscripts. */
const formula = (text) =>
  text
    .split(/(_\{[^}]*\}|_\w)/u)
    .map((part) => (part[0] === "_" ? h("sub", { text: part.replace(/[_{}]/gu, "") }) : part));

/** The equations of step i, each with its numbers: [[equation, numbers], ...]. */
export function equations({ source, weights, log_normaliser: z, states }, i, scoring, mode) {
  const n = i + 1;
  if (!weights) {
    const c = Array.from(states.slice(-states.length / source.length).slice(0, 4), (x) => fixed(x));
    return [["c = →h_{T_x}", `c = (${c.join(", ")}, …), the same vector at every step, also at step ${n}`]];
  }
  const row = weights[i];
  const read = largest(row, 3, 0.01);
  const name = (j) => `_{${n}, ${source[j]}}`;
  const score = (j) => fixed(Math.log(row[j]) + z[i]);
  const context = ["c_i = Σ_j α_{ij} h_j", `c_{${n}} = ${expectationText({ source, weights }, i)}`];
  if (mode === "uniform")
    return [["α_{ij} = 1 / T_x", `α_{${n}, j} = 1 / ${row.length} = ${fixed(row[0])} for every j`], context];
  const share = `exp(${score(read[0])}) / exp(${fixed(z[i])}) = ${fixed(row[read[0]])}`;
  return [
    [`e_{ij} = ${SCORES[scoring]}`, read.map((j) => `e${name(j)} = ${score(j)}`).join(", ")],
    ["α_{ij} = exp(e_{ij}) / Σ_k exp(e_{ik})", `α${name(read[0])} = ${share}`],
    context,
  ];
}

/** Starts the mode: `current()` gives {models, text, settings, step}; `closed(step)` is called last. */
export function startLecture(current, closed) {
  const dialog = byId("lecture");
  const state = { given: null, views: [], view: 0, record: null, step: 0 };

  function show(step) {
    const { record, view } = state;
    const i = Math.max(0, Math.min(step, record.target.length - 1));
    state.step = i;
    const last = record.source.length - 1;
    const weights = record.weights?.[i] ?? record.source.map((_, j) => Number(j === last));
    const chips = record.source.map((word, j) => [
      h("b", { class: weights[j] >= 0.1 ? "now" : null, text: word }),
      h("i", { class: "bar", style: `opacity: ${weights[j].toFixed(3)}` }),
      h("small", { text: weights[j] >= 0.005 ? fixed(weights[j]) : "" }),
    ]);
    byId("lecture-source").replaceChildren(...chips.map((parts) => h("span", {}, parts)));
    const before = record.target.slice(0, i).map((word) => `${word} `);
    byId("lecture-target").replaceChildren(...before, h("mark", { text: record.target[i] }));
    const rows = equations(record, i, view.model.about.scoring, view.mode);
    byId("lecture-equations").replaceChildren(
      ...rows.flatMap(([equation, numbers]) => [
        h("dt", {}, formula(equation)),
        h("dd", {}, formula(numbers)),
      ]),
    );
  }
  async function choose(n) {
    const view = state.views[n];
    const { text, settings } = state.given;
    const record = await view.model.translate(text, { ...settings, attention: view.mode }, [], () => {});
    if (record === null) return;
    Object.assign(state, { view, record });
    const buttons = [...byId("lecture-views").children];
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === n)));
    show(state.step);
    if (dialog.open) return;
    dialog.showModal();
    document.documentElement.requestFullscreen?.().catch(() => {}); // a frame may forbid it
  }
  function open() {
    const given = current();
    const attending = given.models.filter(({ attends }) => attends);
    const views = [
      ...attending.map((model) => ({ title: "attention", model, mode: "trained" })),
      ...attending.map((model) => ({ title: "uniform attention", model, mode: "uniform" })),
      ...given.models
        .filter(({ attends }) => !attends)
        .map((model) => ({ title: "without attention", model, mode: "trained" })),
    ];
    Object.assign(state, { given, views, step: given.step });
    const button = ({ title, model: { label } }, n) =>
      h("button", { type: "button", title: label, onclick: () => choose(n), text: `${n + 1} ${title}` });
    byId("lecture-views").replaceChildren(...views.map(button));
    choose(0);
  }
  dialog.addEventListener("keydown", (event) => {
    if (Object.hasOwn(STEPS, event.key)) show(state.step + STEPS[event.key]);
    else if (state.views[event.key - 1]) choose(event.key - 1);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    closed(state.step);
  });
  addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) dialog.close();
  });
  byId("lecture-close").addEventListener("click", () => dialog.close());
  byId("live-lecture").addEventListener("click", open);
  addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    const typing = target.matches?.("input, select, textarea") || ctrlKey || metaKey || altKey;
    if (key === "l" && !typing && !dialog.open) open();
  });
}
