// Runs switched on and off, the charts over length and over training, and the tables that follow the same switches.

import { h, byId, setOptions } from "./dom.mjs";
import { lengthSpec, trainingSpec } from "./charts.mjs";
import { COLOURS, chartWidth, dataTable, draw, erase, legend, sample, theme } from "./plots.mjs";
import { bucketCounts, capPlaces, countedWords, lengthRows, looks, passing, trainingRows } from "./series.mjs";
import { matrix } from "./significance.mjs";
import { sortable } from "./tables.mjs";

const TRAINING = { train_nll_per_word: "Training NLL, nats a word", nll_per_word: "Development NLL, nats a word", bleu: "Development BLEU" };

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

  const shown = () => (grouped.checked
    ? overview.groups.filter((_, index) => overview.runs.some((run) => run.group === index && on.has(run.label)))
    : overview.runs.filter((run) => on.has(run.label)).map((run) => run.label));
  const lookOf = (name) => (grouped.checked ? look.groups[overview.groups.indexOf(name)] : look.runs.get(name));

  async function lengthChart() {
    const rows = lengthRows(overview, set.value, metric.value, on, grouped.checked);
    const names = shown().filter((name) => rows.some((row) => row.series === name));
    const { title, digits, ratio } = overview.scores[metric.value];
    const element = byId("length-chart");
    byId("length-empty").hidden = names.length > 0;
    const words = countedWords(overview.sets[set.value]);
    const counts = bucketCounts(overview, set.value, metric.value);
    const banded = bands.checked && rows.some((row) => row.low !== null);
    if (names.length === 0) erase(element);
    else await draw(element, lengthSpec({ rows, counts, caps: capPlaces(overview, counts, on), names, look: lookOf, title, digits, bands: banded, zero: !ratio, width: chartWidth(element), theme: theme(), words }));
    legend(byId("length-legend"), names, lookOf);
    dataTable(byId("length-data"), [...rows].sort((a, b) => a.from - b.from), "bucket", names, digits);
    const share = overview.sets[set.value].level;
    const single = grouped.checked ? `Lines are means over seeds; bands are one standard deviation, or the ${share} interval where there is one run.` : `Bands are ${share} bootstrap intervals.`;
    byId("length-note").textContent = `${rows.some((row) => row.low !== null) ? single : "This score has no interval."} The vertical line is the longest training sentence.`;
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
    const { rows, scores, significance } = overview.sets[set.value];
    const titled = (keys) => keys.map((key) => [key, overview.scores[key].title]);
    setOptions(metric, titled(scores.filter((key) => rows.some((row) => row[key]))));
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
  for (const control of [metric, bands]) control.addEventListener("change", lengthChart);
  training.addEventListener("change", trainingChart);
  grouped.addEventListener("change", changed);
  for (const control of [tested, byId("bucket")]) control.addEventListener("change", significance);
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - drawnAt) > 8) charts();
  }).observe(byId("configuration-section"));
  return { changed, on, set, redraw: charts, listen: (listener) => listeners.push(listener) };
}
