// The user's own sentence: type it, make it longer, translate it with two models side by side, step through
// it.

import { byId, h, setOptions } from "../dom.mjs";
import { fixed } from "../format.mjs";
import { readLink, shareField } from "../share.mjs";
import { onResize, stepper } from "../stepper.mjs";
import { column } from "./column.mjs";
import { startModels } from "./models.mjs";
import { startLecture } from "./lecture.mjs";
import { joinClause } from "./sentence.mjs";

const SHORT = 20; // words: longest sentence that is appended
const KEPT = 12; // maximum number of rows of the history

/** Starts the panel over the models of the page, once all are loaded; returns {redraw}. */
export async function startLive({ models: labels, sentences }) {
  const models = await startModels(labels);
  const names =
    "panel text unknown translate longer shorter pick stop progress first second attention beam replace " +
    "said stage columns table history";
  const ui = Object.fromEntries(names.split(" ").map((name) => [name, byId(`live-${name}`)]));
  const {
    languages: [source, target],
    search,
  } = models[0].about;
  const short = sentences.filter(({ words }) => words <= SHORT);
  const state = { columns: [], joined: [], next: 0, history: [], turn: 0 };
  const share = shareField("live");
  const steps = stepper("live", (i) => {
    for (const one of state.columns) one.step(i);
    return `word ${i + 1}`;
  });

  // The sentence
  const readAll = (text) => Promise.all(state.columns.map(({ model }) => model.read(text)));
  const knows = async (word) => (await readAll(word)).every(({ known }) => known[0] === true);
  async function read() {
    const text = ui.text.value;
    const found = await readAll(text);
    if (text !== ui.text.value) return;
    const names = new Map(); // unknown words -> models
    found.forEach(({ words, known }, n) => {
      const missing = [...new Set(words.filter((_, i) => !known[i]))];
      const list = `${missing.slice(0, 12).join(", ")}${missing.length > 12 ? ", …" : ""}`;
      if (list) names.set(list, [...(names.get(list) ?? []), state.columns[n].model.label]);
    });
    const told = [...names].map(([list, labels]) => `unknown to ${labels.join(" and ")}: ${list}`);
    ui.unknown.textContent = told.join("; ");
  }
  function type(text) {
    ui.text.value = text;
    read();
    return translate();
  }
  async function longer() {
    const text = ui.text.value;
    const turn = state.next++;
    const joined = await joinClause(text, short[turn % short.length].text, source, turn, knows);
    if (text !== ui.text.value) return;
    state.joined.push(text);
    ui.shorter.disabled = false;
    type(joined);
  }
  function shorter() {
    type(state.joined.pop());
    ui.shorter.disabled = state.joined.length === 0;
  }

  // Translating
  const settings = () => ({
    beam_size: Number(ui.beam.value),
    attention: ui.attention.querySelector("input:checked").value,
    replace_unk: ui.replace.value,
  });
  async function translate(prefixes = new Map(), step = steps.step) {
    const turn = ++state.turn;
    const text = ui.text.value;
    const chosen = settings();
    share({
      live: text,
      beam: ui.beam.value,
      attention: chosen.attention,
      unknown: ui.replace.value,
      first: ui.first.value,
      second: ui.second.value,
    });
    ui.stop.hidden = false;
    const written = new Map();
    await Promise.all(
      state.columns.map(async (one) => {
        one.waiting();
        const progress = (count, words) => {
          if (turn !== state.turn) return; // stopped, or another sentence was typed
          ui.stage.hidden = false;
          one.writing(words);
          written.set(one.model.label, `${one.model.label}: ${count} steps`);
          ui.progress.textContent = [...written.values()].join("; ");
        };
        try {
          const record = await one.model.translate(text, chosen, prefixes.get(one) ?? [], progress);
          if (turn !== state.turn) return;
          if (record === null) one.failed("There is no word to translate.");
          else {
            ui.stage.hidden = false;
            one.show(record);
            one.draw();
          }
        } catch (error) {
          one.failed(`This could not be translated: ${error.message}`);
        }
      }),
    );
    if (turn === state.turn) finish(text, step);
  }
  function finish(text, step) {
    const records = state.columns.map((one) => one.record());
    ui.stop.hidden = true;
    ui.progress.textContent = "";
    if (records.includes(null)) return;
    steps.go(step, Math.max(...records.map(({ target }) => target.length)) - 1);
    ui.said.textContent = records
      .map((record, n) => `${state.columns[n].model.label}: ${record.text}`)
      .join(". ");
    remember(text, records);
    document.documentElement.dataset.translated = String(state.turn);
  }
  function stop() {
    state.turn++;
    for (const { model } of state.columns) model.stop();
    ui.stop.hidden = true;
    ui.progress.textContent = "Stopped.";
  }
  /** Replaces word i by runner-up n, and lets the model continue from there. */
  function force(one, i, n) {
    const { ids, starts, others } = one.record();
    translate(new Map([[one, [...ids.slice(0, starts[i]), others[i][n]]]]), i);
  }

  /** Adds a sentence to the history. */
  function remember(text, records) {
    state.history = [...state.history.slice(1 - KEPT), { text, records }];
    const head = state.columns.flatMap(({ model: { label, attends } }) => [
      `${label}: nats per word`,
      ...(attends ? [`${label}: words not read`] : []),
    ]);
    const cells = ["Source words", ...head].map((title) => h("th", { scope: "col", text: title }));
    ui.table.tHead.replaceChildren(h("tr", {}, cells));
    ui.table.tBodies[0].replaceChildren(
      ...state.history.map((entry) =>
        h(
          "tr",
          {},
          h("th", { scope: "row", text: entry.records[0].source.length - 1, title: entry.text }),
          entry.records
            .flatMap(({ perWord, unread }) => [fixed(perWord), ...(unread === null ? [] : [unread.length])])
            .map((value) => h("td", { text: value })),
        ),
      ),
    );
    ui.history.hidden = state.history.length < 2;
  }

  // Models and settings
  function chooseModels() {
    const chosen = models.filter(({ label }) => label === ui.first.value || label === ui.second.value);
    if (ui.first.value !== chosen[0].label) chosen.reverse();
    state.columns = chosen.map((model) => {
      const one = column(model, { choose: steps.go, force: (i, n) => force(one, i, n) });
      return one;
    });
    state.history = [];
    ui.columns.replaceChildren(...state.columns.map(({ element }) => element));
    const dictionary = chosen.some(({ about }) => about.dictionary);
    ui.replace.querySelector("[value=dictionary]").disabled = !dictionary;
    if (!dictionary && ui.replace.value === "dictionary") ui.replace.value = "none";
    const words = chosen.map((model) => model.about.words ?? []);
    const known = words[0].filter((word) => words.every((list) => list.includes(word)));
    byId("live-vocabulary").hidden = known.length === 0;
    byId("live-known-count").textContent = known.length.toLocaleString("en");
    byId("live-known").textContent = known.sort((a, b) => a.localeCompare(b)).join(", ");
    ui.attention.hidden = !chosen.some(({ attends }) => attends);
  }
  function set(given) {
    const selects = { first: ui.first, second: ui.second, unknown: ui.replace };
    for (const [key, select] of Object.entries(selects)) {
      if ([...select.options].some(({ value }) => value === given[key])) select.value = given[key];
    }
    if (given.beam) ui.beam.value = given.beam;
    for (const box of ui.attention.querySelectorAll("input"))
      if (box.value === given.attention) box.checked = true;
    byId("live-beam-said").textContent = ui.beam.value;
    chooseModels();
  }
  function followLink() {
    const { live, ...settings } = readLink(location.hash);
    if (live === undefined) return false;
    set(settings);
    type(live);
    byId("live-section").scrollIntoView();
    return true;
  }

  const plain = models.find(({ attends }) => !attends);
  const attending = models.find(({ attends }) => attends);
  const named = labels.map((label) => [label, label]);
  setOptions(ui.first, named, (plain ?? models[0]).label);
  setOptions(ui.second, named, (attending ?? models[1] ?? models[0]).label);
  for (const field of ["first", "second"]) byId(`live-${field}-field`).hidden = models.length < 2;
  const called = new Intl.DisplayNames(["en"], { type: "language" });
  byId("live-language").textContent = called.of(source);
  byId("live-target").textContent = called.of(target);
  ui.text.lang = source;
  setOptions(ui.pick, [
    ["", "from the test set …"],
    ...sentences.map(({ text, words }, i) => [
      i,
      `${words} · ${text}`,
    ]),
  ]);
  byId("live-pick-field").hidden = ui.shorter.hidden = sentences.length === 0;
  ui.longer.hidden = short.length === 0;
  set({ beam: Math.min(12, search.beam_size), unknown: search.replace_unk });

  ui.text.addEventListener("input", read);
  ui.text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    translate();
  });
  ui.translate.addEventListener("click", () => translate());
  ui.longer.addEventListener("click", longer);
  ui.shorter.addEventListener("click", shorter);
  ui.stop.addEventListener("click", stop);
  ui.pick.addEventListener("change", () => {
    if (ui.pick.value !== "") type(sentences[Number(ui.pick.value)].text);
    ui.pick.value = "";
  });
  for (const select of [ui.first, ui.second])
    select.addEventListener("change", () => {
      chooseModels();
      read();
      translate();
    });
  ui.beam.addEventListener("input", () => {
    byId("live-beam-said").textContent = ui.beam.value;
  });
  for (const control of [ui.beam, ui.replace, ui.attention])
    control.addEventListener("change", () => translate());
  window.addEventListener("hashchange", followLink);
  startLecture(
    () => ({
      models: state.columns.map(({ model }) => model),
      text: ui.text.value,
      settings: settings(),
      step: steps.step,
    }),
    steps.go,
  );
  const redraw = () => {
    for (const one of state.columns) one.draw();
  };
  onResize(ui.columns, redraw);

  ui.panel.hidden = false;
  if (!followLink() && sentences.length)
    type((sentences.find(({ words }) => words >= 10) ?? sentences[0]).text);
  return { redraw };
}
