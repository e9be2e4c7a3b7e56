// The sentence of one's own: typed, lengthened, translated by two models side by side, stepped through.

import { copyField } from "../clipboard.mjs";
import { byId, h, setOptions } from "../dom.mjs";
import { fixed } from "../format.mjs";
import { column } from "./column.mjs";
import { readLink, writeLink } from "./link.mjs";
import { startModels } from "./models.mjs";
import { startPresenting } from "./present.mjs";
import { joinClause, mark } from "./sentence.mjs";

const SHORT = 20; // words of a sentence that is joined on
const KEPT = 12; // rows of the history

const language = (code) => new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;

/** Starts the panel over the models of the page, once all are loaded; returns {redraw}, or null without models. */
export async function startLive(live) {
  if (!live) return null;
  const ui = Object.fromEntries(["panel", "text", "marks", "unknown", "translate", "longer", "shorter", "pick", "stop", "progress", "first", "second", "attention", "beam", "replace", "link", "copied", "said", "stage", "previous", "next", "slider", "columns", "table", "history"].map((name) => [name, byId(`live-${name}`)]));
  const models = await startModels(live);
  const named = (label) => models.find((model) => model.label === label);
  const sentences = live.sentences;
  const short = sentences.filter(({ words }) => words <= SHORT);
  const state = { columns: [], step: 0, joined: [], next: 0, history: [], turn: 0 };

  // What is typed --------------------------------------------------------------------------------------------------------
  async function read() {
    const text = ui.text.value;
    const found = await Promise.all(state.columns.map(({ model }) => model.read(text)));
    if (text !== ui.text.value) return;
    const known = found[0].words.map((_, i) => found.every((one) => one.known[i] ?? true));
    mark(ui.marks, text, found[0].words, known);
    const said = found.flatMap(({ words, known: own }, n) => {
      const missing = [...new Set(words.filter((_, i) => !own[i]))];
      return missing.length ? [`${state.columns[n].model.label} does not know ${missing.slice(0, 12).join(", ")}${missing.length > 12 ? ", …" : ""}`] : [];
    });
    ui.unknown.textContent = said.join("; ");
  }
  function type(text) {
    ui.text.value = text;
    ui.marks.textContent = text;
    read();
  }
  const knows = async (word) => (await Promise.all(state.columns.map(({ model }) => model.read(word)))).every(({ known }) => known[0] === true);
  async function longer() {
    const text = ui.text.value;
    const turn = state.next++;
    const more = short[turn % short.length].text;
    const joined = await joinClause(text, more, models[0].about.languages[0], turn, knows);
    if (text !== ui.text.value) return;
    state.joined.push(text);
    ui.shorter.disabled = false;
    type(joined);
    translate();
  }
  function shorter() {
    type(state.joined.pop());
    ui.shorter.disabled = state.joined.length === 0;
    translate();
  }

  // Translating ----------------------------------------------------------------------------------------------------------
  const settings = () => ({
    beam: ui.beam.value,
    attention: ui.attention.querySelector("input:checked").value,
    unknown: ui.replace.value,
    first: ui.first.value,
    second: ui.second.value,
  });
  async function translate(prefixes = new Map()) {
    const turn = ++state.turn;
    const text = ui.text.value;
    const chosen = settings();
    ui.link.value = location.href.split("#")[0] + writeLink(text, chosen);
    ui.copied.textContent = "";
    ui.stop.hidden = false;
    const wanted = { beam_size: Number(chosen.beam), attention: chosen.attention, replace_unk: chosen.unknown };
    const written = new Map();
    await Promise.all(state.columns.map(async (one) => {
      one.waiting();
      const progress = (steps) => {
        if (turn !== state.turn) return; // stopped, or another sentence was typed
        written.set(one.model.label, steps);
        ui.progress.textContent = [...written].map(([label, count]) => `${label}: ${count} steps`).join("; ");
      };
      try {
        const record = await one.model.translate(text, wanted, prefixes.get(one) ?? [], progress);
        if (turn !== state.turn) return;
        if (record === null) one.failed("There is no word to translate.");
        else one.show(record);
      } catch (error) {
        one.failed(`This could not be translated: ${error.message}`);
      }
    }));
    if (turn !== state.turn) return;
    finished(text, state.columns.map((one) => one.record()));
  }
  function finished(text, records) {
    ui.stop.hidden = true;
    ui.progress.textContent = "";
    if (records.some((record) => record === null)) return;
    ui.stage.hidden = false;
    for (const one of state.columns) one.draw();
    ui.slider.max = Math.max(...records.map((record) => record.target.length)) - 1;
    go(Math.min(state.step, Number(ui.slider.max)));
    ui.said.textContent = state.columns.map((one, n) => `${one.model.label}: ${records[n].text}`).join(". ");
    remember(text, records);
    document.documentElement.dataset.translated = String(state.turn);
  }
  function stop() {
    state.turn++;
    for (const one of state.columns) one.model.stop();
    ui.stop.hidden = true;
    ui.progress.textContent = "Stopped.";
  }
  /** Has a model write runner-up n in place of word i, and go on from there. */
  function force(one, i, n) {
    const record = one.record();
    const prefix = [...record.ids.slice(0, record.starts[i]), record.others[i][n]];
    state.step = i;
    translate(new Map(state.columns.map((each) => [each, each === one ? prefix : []])));
  }

  // Sentences so far -----------------------------------------------------------------------------------------------------
  function remember(text, records) {
    const labels = state.columns.map(({ model }) => model.label).join("\n");
    if (state.labels !== labels) state.history = [];
    state.labels = labels;
    state.history = [...state.history.slice(1 - KEPT), { text, records }];
    const head = h("tr", {}, h("th", { scope: "col", text: "Source words" }), state.columns.flatMap(({ model }) => [
      h("th", { scope: "col", text: `${model.label}: nats per word` }),
      model.attends ? h("th", { scope: "col", text: `${model.label}: words not read` }) : null,
    ]));
    const rows = state.history.map((entry) => h("tr", {}, h("th", { scope: "row", text: entry.records[0].source.length - 1, title: entry.text }), entry.records.flatMap((record) => [
      h("td", { text: fixed(record.perWord) }),
      record.unread === null ? null : h("td", { text: record.unread.length }),
    ])));
    ui.table.tHead.replaceChildren(head);
    ui.table.tBodies[0].replaceChildren(...rows);
    ui.history.hidden = state.history.length < 2;
  }

  // Steps ----------------------------------------------------------------------------------------------------------------
  function go(step) {
    state.step = Math.max(0, Math.min(step, Number(ui.slider.max)));
    ui.slider.value = state.step;
    ui.slider.setAttribute("aria-valuetext", `word ${state.step + 1}`);
    ui.previous.disabled = state.step === 0;
    ui.next.disabled = state.step === Number(ui.slider.max);
    for (const one of state.columns) one.step(state.step);
  }
  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in moves) go(state.step + moves[event.key]);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(Number(ui.slider.max));
    else return;
    event.preventDefault();
  }

  // Models and settings --------------------------------------------------------------------------------------------------
  function choose() {
    const chosen = [...new Set([ui.first.value, ui.second.value])].map(named);
    state.columns = chosen.map((model) => {
      const one = column(model, { choose: go, force: (i, n) => force(one, i, n) });
      return one;
    });
    ui.columns.replaceChildren(...state.columns.map((one) => one.element));
    const dictionary = chosen.some(({ about }) => about.dictionary);
    ui.replace.querySelector("[value=dictionary]").disabled = !dictionary;
    if (!dictionary && ui.replace.value === "dictionary") ui.replace.value = "none";
    ui.attention.hidden = !chosen.some((model) => model.attends);
  }
  function set(given) {
    for (const [key, select] of [["first", ui.first], ["second", ui.second], ["unknown", ui.replace]]) {
      if ([...select.options].some((option) => option.value === given[key])) select.value = given[key];
    }
    if (given.beam) ui.beam.value = given.beam;
    for (const box of ui.attention.querySelectorAll("input")) if (box.value === given.attention) box.checked = true;
    byId("live-beam-said").textContent = ui.beam.value;
  }
  function open({ text, settings: given }) {
    set(given);
    choose();
    type(text);
    return translate();
  }
  function followLink() {
    const link = readLink(location.hash);
    if (link) open(link);
    return Boolean(link);
  }

  const options = models.map(({ label }) => [label, label]);
  const [plain, attending] = [models.find((model) => !model.attends), models.find((model) => model.attends)];
  setOptions(ui.first, options, (plain ?? models[0]).label);
  setOptions(ui.second, options, (attending ?? models[1] ?? models[0]).label);
  for (const field of ["first", "second"]) byId(`live-${field}-field`).hidden = models.length < 2;
  byId("live-language").textContent = language(models[0].about.languages[0]);
  ui.text.lang = models[0].about.languages[0];
  setOptions(ui.pick, [["", "of the test set …"], ...sentences.map(({ text, words }, i) => [i, `${words} · ${text.length > 70 ? `${text.slice(0, 69)}…` : text}`])]);
  byId("live-pick-field").hidden = ui.longer.hidden = ui.shorter.hidden = sentences.length === 0;
  ui.longer.hidden ||= short.length === 0;
  set({ beam: String(Math.min(12, models[0].about.search.beam_size)), unknown: models[0].about.search.replace_unk });
  choose();

  ui.text.addEventListener("input", () => { ui.marks.textContent = ui.text.value; read(); });
  ui.text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    translate();
  });
  ui.translate.addEventListener("click", () => translate());
  ui.longer.addEventListener("click", longer);
  ui.shorter.addEventListener("click", shorter);
  ui.stop.addEventListener("click", stop);
  startPresenting(ui.panel, byId("live-present"));
  ui.pick.addEventListener("change", () => {
    if (ui.pick.value === "") return;
    type(sentences[Number(ui.pick.value)].text);
    ui.pick.value = "";
    translate();
  });
  for (const select of [ui.first, ui.second]) select.addEventListener("change", () => { choose(); read(); translate(); });
  ui.beam.addEventListener("input", () => { byId("live-beam-said").textContent = ui.beam.value; });
  for (const control of [ui.beam, ui.replace, ui.attention]) control.addEventListener("change", () => translate());
  byId("live-copy").addEventListener("click", () => copyField(ui.link, ui.copied));
  ui.previous.addEventListener("click", () => go(state.step - 1));
  ui.next.addEventListener("click", () => go(state.step + 1));
  ui.slider.addEventListener("input", () => go(Number(ui.slider.value)));
  ui.stage.addEventListener("keydown", keyed);
  window.addEventListener("hashchange", followLink);
  const redraw = () => { for (const one of state.columns) one.draw(); };
  let width = ui.columns.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(ui.columns.clientWidth - width) < 8) return;
    width = ui.columns.clientWidth;
    redraw();
  }).observe(ui.columns);

  ui.panel.hidden = false;
  await Promise.all(models.map((model) => model.loaded));
  document.documentElement.dataset.live = "true";
  if (!followLink()) {
    const middle = sentences.find(({ words }) => words >= 10) ?? sentences[0];
    if (middle) open({ text: middle.text, settings: {} });
  }
  return { redraw };
}
