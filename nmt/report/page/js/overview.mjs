// Runs switched on and off, the charts over length and over training, and the tables that follow the same switches.

import { h, byId, setOptions } from "./dom.mjs";
import { lengthSpec, trainingSpec } from "./charts.mjs";
import { COLOURS, chartWidth, dataTable, draw, erase, legend, sample, theme } from "./plots.mjs";
import { bucketCounts, caps, comparedRows, looks, passing, scoreRows, trainingRows } from "./series.mjs";
import { matrix } from "./significance.mjs";
import { sortable } from "./tables.mjs";

const TRAINING = { train_nll_per_word: "Training NLL, nats per word", nll_per_word: "Development NLL, nats per word", bleu: "Development BLEU" };

const BANDED = 25; // lines whose bands are drawn at first: those of more hide them

/** Starts the part of the page that speaks of runs as wholes; returns {changed, on}. */
export function startOverview(overview) {
  const look = looks(overview, COLOURS);
  const on = new Set(overview.runs.map((run) => run.label));
  const off = {};
  const listeners = [];
  const set = byId("set");
  const metric = byId("metric");
  const tested = byId("tested");
  const grouped = byId("grouped");
  const compared = byId("compared");
  const bands = byId("bands");
  const training = byId("training-metric");
  setOptions(set, Object.keys(overview.sets).map((name) => [name, name]));
  setOptions(training, Object.entries(TRAINING).filter(([key]) => overview.runs.some((run) => run.history.some((point) => point[key] !== null && point[key] !== undefined))));
  const scored = Object.keys(overview.sets).length > 0;
  for (const part of ["length", "scores", "significance", "translations"]) byId(`${part}-section`).hidden = !scored;
  byId("training-curve").hidden = !training.value;
  byId("training-section").hidden = !training.value && !document.querySelector("#training-section table.sortable");
  const seeded = overview.groups.length < overview.runs.length;
  byId("grouped-field").hidden = !seeded;
  byId("set-field").hidden = Object.keys(overview.sets).length < 2;
  grouped.checked = seeded && overview.runs.length > 4;
  bands.checked = (grouped.checked ? overview.groups : overview.runs).length <= BANDED;

  const boxes = new Map();
  function runList() {
    const items = overview.runs.map((run) => {
      const box = h("input", { type: "checkbox", checked: true, onchange: () => { toggle(run.label, box.checked); changed(); } });
      boxes.set(run.label, box);
      return h("li", {}, h("label", {}, box, sample(look.runs.get(run.label)), h("span", { text: run.label })));
    });
    byId("run-list").replaceChildren(...items);
  }
  function toggle(label, state) {
    if (state) on.add(label);
    else on.delete(label);
    boxes.get(label).checked = state;
  }
  function everything(state) {
    for (const run of overview.runs) toggle(run.label, state);
    for (const key of Object.keys(off)) off[key].clear();
    for (const box of byId("filters").querySelectorAll("input")) box.checked = true;
    changed();
  }
  function filterBoxes() {
    const fields = overview.filters.map((filter) => {
      off[filter.key] = new Set();
      const values = [...new Set(filter.values)];
      return h("fieldset", {}, h("legend", { text: filter.title }), values.map((value) => {
        const box = h("input", { type: "checkbox", checked: true, onchange: () => {
          if (box.checked) off[filter.key].delete(value);
          else off[filter.key].add(value);
          const pass = new Set(passing(overview, off));
          for (const run of overview.runs) toggle(run.label, pass.has(run.label));
          changed();
        } });
        return h("label", {}, box, h("span", { text: value }));
      }));
    });
    byId("filters").replaceChildren(...fields);
  }

  const shown = (groups = grouped.checked) => (groups
    ? overview.groups.filter((_, index) => overview.runs.some((run) => run.group === index && on.has(run.label)))
    : overview.runs.filter((run) => on.has(run.label)).map((run) => run.label));
  const lookOf = (name, groups = grouped.checked) => (groups ? look.groups[overview.groups.indexOf(name)] : look.runs.get(name));

  /** The choice of `compared`: a score itself, or its difference or ratio to a control. */
  function view() {
    const [kind, control] = compared.value.split("\n");
    return { kind, control };
  }
  async function lengthChart() {
    const { kind, control } = view();
    const entry = overview.sets[set.value];
    const ownGroups = grouped.checked || kind !== "score";
    const rows = (key) => (kind === "score" ? scoreRows(overview, set.value, key, on, grouped.checked) : { curves: comparedRows(overview, set.value, key, on, kind, control), buckets: [] });
    const about = (key) => ({ ...rows(key), title: { score: "", difference: "Difference of ", ratio: "Ratio of " }[kind] + overview.scores[key].title, digits: overview.scores[key].digits + (kind === "ratio"), zero: kind === "score" && !overview.scores[key].ratio, level: { difference: 0, ratio: 1 }[kind] });
    const main = about(metric.value);
    const all = [...main.curves, ...main.buckets];
    const names = shown(ownGroups).filter((name) => all.some((row) => row.series === name));
    const look = (name) => lookOf(name, ownGroups);
    const element = byId("length-chart");
    byId("length-empty").hidden = names.length > 0;
    const parts = metric.value === "bleu" ? ["brevity_penalty", "bleu_precisions"].filter((key) => overview.scores[key]) : [];
    const counts = bucketCounts(overview, set.value, metric.value);
    const common = { caps: caps(overview, on), names, look, bands: bands.checked, width: chartWidth(element), theme: theme(), words: "source words" };
    if (names.length === 0) erase(element);
    else await draw(element, lengthSpec({ ...main, ...common, counts, parts: parts.map(about) }));
    legend(byId("length-legend"), names, look);
    const table = kind === "score" && main.buckets.length ? main.buckets : main.curves.map((row) => ({ ...row, bucket: row.words.toFixed(0) }));
    dataTable(byId("length-data"), table, "bucket", names, main.digits);
    byId("length-note").textContent = kind === "score" ? entry.caption : entry.compared[control];
  }
  async function trainingChart() {
    if (!training.value) return;
    const rows = trainingRows(overview, training.value, on, grouped.checked);
    const names = shown().filter((name) => rows.some((row) => row.series === name));
    const element = byId("training-chart");
    if (names.length === 0) erase(element);
    else await draw(element, trainingSpec({ rows, names, look: lookOf, title: TRAINING[training.value], width: chartWidth(element), theme: theme() }));
    legend(byId("training-legend"), names, lookOf);
    dataTable(byId("training-data"), rows, "update", names, 3);
  }
  let drawnAt = 0;
  function charts() {
    drawnAt = byId("configuration-section").clientWidth;
    return Promise.all([scored ? lengthChart() : null, trainingChart()]);
  }
  function metrics() {
    const { scores, significance } = overview.sets[set.value];
    const titled = (keys) => keys.map((key) => [key, overview.scores[key].title]);
    setOptions(metric, titled(scores));
    const controls = Object.keys(overview.sets[set.value].compared);
    const kinds = [["difference", "less that of"], ["ratio", "divided by that of"]];
    setOptions(compared, [["score", "itself"], ...kinds.flatMap(([kind, text]) => controls.map((name) => [`${kind}\n${name}`, `${text} ${name}`]))]);
    byId("compared-field").hidden = controls.length < 2;
    setOptions(tested, titled(Object.keys(significance)));
  }
  function tables() {
    for (const block of document.querySelectorAll("[data-set]")) block.hidden = block.dataset.set !== set.value;
    for (const row of document.querySelectorAll("tr[data-run]")) row.hidden = !on.has(row.dataset.run);
  }
  function significance() {
    const labels = overview.runs.map((run) => run.label);
    const shownLabels = labels.filter((label) => on.has(label));
    matrix(overview.sets[set.value], tested.value, overview.scores[tested.value], labels, shownLabels);
  }
  function changed() {
    byId("run-count").textContent = `${on.size} of ${overview.runs.length} runs shown`;
    tables();
    if (scored) significance();
    for (const listener of listeners) listener();
    return charts();
  }

  runList();
  filterBoxes();
  if (scored) metrics();
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  byId("all-on").addEventListener("click", () => everything(true));
  byId("all-off").addEventListener("click", () => everything(false));
  set.addEventListener("change", () => { metrics(); changed(); });
  for (const control of [metric, bands, compared]) control.addEventListener("change", lengthChart);
  training.addEventListener("change", trainingChart);
  grouped.addEventListener("change", changed);
  for (const control of [tested, byId("bucket")]) control.addEventListener("change", significance);
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - drawnAt) > 8) charts();
  }).observe(byId("configuration-section"));
  return { changed, on, set, redraw: charts, listen: (listener) => listeners.push(listener) };
}
