// What one model wrote, and how: the words, the figures, the picture of the attention or of the fixed vector, and the step.

import { energies, entropy, expectationText, inWords, largest } from "../alignment.mjs";
import { h } from "../dom.mjs";
import { fixed, percent, plural } from "../format.mjs";
import { heatmap } from "../heatmap.mjs";
import { saveButtons } from "../save.mjs";
import { drawStates, likeness } from "./vector.mjs";

const SHOWN = 6; // source words a step

/** A column for a model: {element, show(record), step(i), waiting(said)}; `choose(i)` and `force(i, n)` are told of clicks. */
export function column(model, { choose, force }) {
  const ui = {
    words: h("p", { class: "written", lang: model.about.languages[1] }),
    figures: h("dl", { class: "figures" }),
    map: h("div", { class: "map", tabindex: 0, role: "group", "aria-label": `Picture of ${model.label}` }),
    states: h("div", { class: "fills" }),
    said: h("p", { class: "hover" }),
    read: h("tbody"),
    totals: h("p", { class: "keys" }),
    runners: h("tbody"),
  };
  const head = (...titles) => h("thead", {}, h("tr", {}, titles.map((text) => (text === "" ? h("td") : h("th", { scope: "col", text })))));
  const reads = h("table", { class: "bars" }, h("caption", { text: "Reads" }), head("Source word", "", "Weight", "Energy"), ui.read);
  const runners = h("table", { class: "bars" }, h("caption", { text: "Runners-up (press one to have it written instead)" }), head("Word", "", "Probability"), ui.runners);
  const name = h("h3", { text: model.label });
  const save = saveButtons(() => ui.map.querySelector("svg"), () => `${model.label} ${record.target.slice(0, 5).join(" ")}`);
  const element = h("article", { class: "live-column", "aria-label": model.label }, name, ui.words, ui.figures, ui.map, save, ui.states, ui.said, h("div", { class: "live-step" }, model.attends ? h("div", {}, reads, ui.totals) : ui.totals, runners));
  save.hidden = true;
  let record = null;
  let buttons = [];
  let picture = null;
  let at = 0;

  function draw() {
    const label = record.weights
      ? `Attention of ${plural(record.target.length, "written word")} over ${plural(record.source.length, "source word")} in ${model.label}`
      : `${model.label}: one fixed vector feeds each of ${plural(record.target.length, "written word")}`;
    picture = heatmap(ui.map, record, { choose, hover: () => {}, label });
  }

  function show(found) {
    record = found;
    element.classList.remove("waits");
    buttons = record.target.map((word, i) => h("button", { type: "button", class: record.written[i] === word ? "word" : "word replaced", title: record.written[i] === word ? null : `the model wrote ${record.written[i]}`, onclick: () => choose(i), text: word }));
    ui.words.replaceChildren(...buttons.flatMap((button) => [button, " "]));
    const entropies = record.weights?.map(entropy);
    const figures = [
      ["log-probability per word", `${fixed(record.perWord)} nats`],
      ["words not read", record.unread === null ? "– (no attention)" : unread(record)],
      ["attention entropy", entropies ? `${fixed(entropies.reduce((a, b) => a + b, 0) / entropies.length)} nats` : "–"],
      ["written in", `${fixed(record.seconds)} s${record.finished ? "" : ", without an end"}`],
    ];
    ui.figures.replaceChildren(...figures.map(([title, value]) => h("div", {}, h("dt", { text: title }), h("dd", { text: value }))));
    draw();
    save.hidden = false;
    ui.states.replaceChildren();
    if (record.states) {
      const S = record.source.length;
      const first = likeness(record.states, S).findLastIndex((value) => value < 0.5) + 1;
      ui.states.append(h("p", { class: "see", text: `The vector as it fills: a column a source word, a row a unit. The last column is c, all that the decoder gets; the cosine between the columns and c stays above one half from “${record.source[first]}” on (word ${first + 1} of ${S}).` }), drawStates(record.states, record.source));
    }
  }

  function step(i) {
    if (!record) return;
    at = Math.min(i, record.target.length - 1);
    buttons.forEach((button, n) => {
      button.setAttribute("aria-pressed", String(n === at));
    });
    picture.step(at);
    ui.said.textContent = inWords(record, at);
    if (record.weights) {
      const weights = record.weights[at];
      const scores = energies(weights, record.z[at]);
      ui.read.replaceChildren(...largest(weights, SHOWN, 0.001).map((j) => row(record.source[j], weights[j], [fixed(weights[j], 3), fixed(scores[j])])));
      ui.totals.textContent = `entropy ${fixed(entropy(weights))} nats (all alike would be ${fixed(Math.log(weights.length))})`;
    } else ui.totals.textContent = expectationText(record, at);
    const flat = record.runners[at];
    const rows = [row(record.written[at], Math.exp(record.p[at]), [percent(Math.exp(record.p[at]))], "own")];
    for (let k = 0; k < flat.length; k += 2) {
      const chance = Math.exp(flat[k + 1]);
      const button = h("button", { type: "button", class: "word", onclick: () => force(at, k / 2), text: flat[k] });
      rows.push(row(button, chance, [percent(chance)]));
    }
    ui.runners.replaceChildren(...rows);
  }

  return {
    element,
    model,
    show,
    step,
    draw: () => { if (record) { draw(); picture.step(at); } },
    record: () => record,
    waiting: () => element.classList.add("waits"),
    failed: (message) => { element.classList.remove("waits"); ui.words.textContent = message; },
  };
}

const row = (name, share, cells, kind = null) =>
  h("tr", { class: kind }, h("th", { scope: "row" }, name), h("td", { class: "track" }, h("span", { class: "bar", style: `width: ${(100 * share).toFixed(1)}%` })), cells.map((text) => h("td", { text })));

function unread(record) {
  const words = record.unread.map((j) => record.source[j]);
  const named = words.length ? `: ${words.slice(0, 8).join(", ")}${words.length > 8 ? ", …" : ""}` : "";
  return `${words.length} of ${record.source.length - 1}${named}`;
}
