// Shows one model's translation: its words and numbers, a picture of the attention or of the fixed vector,
// and the details of one step.

import { entropy, expectationText, inWords, largest, mean, totals } from "../alignment.mjs";
import { LEAST, SHOWN, runnerRows, weightRow } from "../bars.mjs";
import { h } from "../dom.mjs";
import { fixed, plural } from "../format.mjs";
import { heatmap, saveSvg } from "../heatmap.mjs";
import { drawStates } from "./vector.mjs";

/** A column for a model: {element, model, show(record), step(i), draw(), record(), waiting(), writing(words),
 * failed(message)}.
 *
 * @param choose called with the word that is clicked
 * @param force called with a word and the number of the runner-up that replaces it
 */
export function column(model, { choose, force }) {
  const ui = {
    words: h("p", { class: "written", dir: "auto", lang: model.about.languages[1] }),
    figures: h("dl", { class: "figures" }),
    map: h("div", { class: "map", tabindex: 0, role: "group", "aria-label": `Picture of ${model.label}` }),
    states: h("div", { class: "fills" }),
    said: h("p", { class: "said" }),
    read: h("tbody"),
    totals: h("p", { class: "keys" }),
    runners: h("tbody"),
  };
  const cell = (text) => (text === "" ? h("td") : h("th", { scope: "col", text }));
  const head = (titles) => h("thead", {}, h("tr", {}, titles.map(cell)));
  const bars = (text, titles, body) =>
    h("table", { class: "bars" }, h("caption", { text }), head(titles), body);
  const reads = bars("Reads", ["Source word", "", "Weight", "Energy"], ui.read);
  const runners = bars("Runners-up (click to force)", ["Word", "", "Probability"], ui.runners);
  const tables = h("div", { class: "tables" }, model.attends ? reads : null, runners);
  const reading = h("div", { class: "reading" }, tables, ui.totals);
  const gist = model.attends
    ? "looks back at every word of the sentence for each word it writes."
    : "reads the whole sentence into one fixed vector.";
  const save = h("button", {
    type: "button",
    class: "small",
    onclick: () => saveSvg(ui.map, `${model.label}.svg`),
    text: "Save the picture (SVG)",
  });
  const element = h(
    "article",
    { class: "live-column", "aria-label": model.label },
    h("h3", {}, model.label, h("small", { text: ` ${gist}` })),
    ui.words,
    ui.said,
    ui.map,
    reading,
    ui.figures,
    save,
    ui.states,
  );
  let record = null;
  let buttons = [];
  let picture = null;
  let at = 0;

  function draw() {
    if (!record) return;
    const written = plural(record.target.length, "written word");
    const label = record.weights
      ? `Attention of ${written} over ${plural(record.source.length, "source word")} in ${model.label}`
      : `${model.label}: one fixed vector feeds each of ${written}`;
    picture = heatmap(ui.map, record, { choose, label, tall: heightLeft(ui.map) });
    picture.step(at);
  }

  function show(translated) {
    record = translated;
    at = 0;
    element.classList.remove("waits");
    buttons = record.target.map((word, i) => {
      const replaced = record.written[i] !== word;
      return h("button", {
        type: "button",
        class: replaced ? "word replaced" : "word",
        title: replaced ? `the model wrote ${record.written[i]}` : null,
        onclick: () => choose(i),
        text: word,
      });
    });
    ui.words.replaceChildren(...buttons.flatMap((button) => [button, " "]));
    const figures = {
      "log-probability per word": `${fixed(record.perWord)} nats`,
      "words not read": record.unread === null ? "– (no attention)" : unread(record),
      "attention entropy": record.weights ? `${fixed(mean(record.weights.map(entropy)))} nats` : "–",
      "decoded in": `${fixed(record.seconds)} s${record.finished ? "" : "; stopped at the length limit"}`,
    };
    ui.figures.replaceChildren(
      ...Object.entries(figures).map(([title, value]) =>
        h("div", {}, h("dt", { text: title }), h("dd", { text: value })),
      ),
    );
    ui.states.replaceChildren();
    if (record.states) {
      ui.states.append(
        h("p", {
          class: "see",
          text:
            "The encoder's state after each source word: one column per word, one row per unit. " +
            "The last column is c, the decoder's only input.",
        }),
        drawStates(record.states, record.source),
      );
    }
  }

  function step(i) {
    if (!record) return;
    at = Math.min(i, record.target.length - 1);
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(n === at)));
    picture.step(at);
    ui.said.textContent = inWords(record, at);
    if (record.weights) {
      const weights = record.weights[at];
      ui.read.replaceChildren(...largest(weights, SHOWN, LEAST).map((j) => weightRow(record, at, j)));
      ui.totals.textContent = totals(weights);
    } else ui.totals.textContent = expectationText(record, at);
    const button = (text, n) =>
      h("button", { type: "button", class: "word", onclick: () => force(at, n), text });
    ui.runners.replaceChildren(...runnerRows({ ...record, target: record.written }, at, button));
  }

  return {
    element,
    model,
    show,
    step,
    draw,
    record: () => record,
    waiting: () => element.classList.add("waits"),
    writing(words) {
      ui.words.textContent = `${words.join(" ")} …`;
    },
    failed: (message) => {
      element.classList.remove("waits");
      ui.words.textContent = message;
    },
  };
}

/** The height in pixels that the window has for a picture: below all above it, or else below its section. */
function heightLeft(map) {
  const { top } = map.getBoundingClientRect();
  const start = map.closest("section")?.getBoundingClientRect().top ?? 0;
  const [below, inSection] = [top + scrollY, top - start + 45].map((y) => innerHeight - y - 12);
  return Math.max(below > 280 ? below : inSection, 0.45 * innerHeight);
}

function unread({ unread: places, source }) {
  const words = places.slice(0, 8).map((j) => source[j]);
  const named = words.length ? `: ${words.join(", ")}${places.length > 8 ? ", …" : ""}` : "";
  return `${places.length} of ${source.length - 1}${named}`;
}
