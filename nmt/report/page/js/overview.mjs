// Switches runs on and off, in the charts over length and over training and in the tables.

import { MANY, lengthSpec, trainingSpec } from "./charts.mjs";
import { byId, h, setOptions } from "./dom.mjs";
import { COLOURS, chartWidth, dataTable, draw, hover, legend, sample, theme } from "./plots.mjs";
import { bucketCounts, caps, comparedRows, looks, scoreRows, trainingRows } from "./series.mjs";
import { matrix } from "./significance.mjs";
import { chosen, markRows, spotlight } from "./spotlight.mjs";
import { onResize } from "./stepper.mjs";
import { sortable } from "./tables.mjs";

const TRAINING = {
  train_nll_per_word: "Training NLL, nats per word",
  nll_per_word: "Development NLL, nats per word",
  bleu: "Development BLEU",
};

const comparedCaption = (control, level) =>
  `Each system compared with ${control} on the same sentences of each length, so their difficulty cancels. ` +
  `Band: ${level} confidence interval that holds at all lengths together; where it excludes the line of ` +
  `${control}, the systems differ.`;

const domainTitle = (domain) => (domain === "adjusted" ? "adjusted for domain" : `in ${domain}`);
const domainCaption = (domain) =>
  domain === "adjusted"
    ? "Sentences are weighted so that the mix of domains is the same at all lengths."
    : `Sentences of the domain ${domain} alone.`;

/** Starts the charts and the tables of runs; returns {changed, on, set, redraw, listen}. */
export function startOverview(overview) {
  const look = looks(overview, COLOURS);
  const on = new Set(overview.runs.map(({ label }) => label));
  const listeners = [];
  const controls = "set metric tested bucket grouped compared bands training-metric";
  const [set, metric, tested, bucket, together, compared, bands, training] = controls.split(" ").map(byId);
  const scored = Object.keys(overview.sets).length > 0;
  const seeded = overview.groups.length < overview.runs.length;
  const known = (key) =>
    overview.runs.some(({ history }) => history.some((point) => (point[key] ?? null) !== null));

  // Which runs are shown
  const boxes = new Map();
  function toggle(label, state) {
    if (state) on.add(label);
    else on.delete(label);
    boxes.get(label).checked = state;
  }
  function everything(state) {
    for (const label of boxes.keys()) toggle(label, state);
    changed();
  }
  byId("run-list").replaceChildren(
    ...overview.runs.map(({ label }) => {
      const box = h("input", {
        type: "checkbox",
        checked: true,
        onchange: () => {
          toggle(label, box.checked);
          changed();
        },
      });
      boxes.set(label, box);
      return h("li", {}, h("label", {}, box, sample(look.runs.get(label)), h("span", { text: label })));
    }),
  );

  // Charts
  function lines(rows, groups) {
    const held = new Set(rows.map(({ series }) => series));
    return (groups ? overview.groups : overview.runs.map(({ label }) => label)).filter((name) =>
      held.has(name),
    );
  }
  const lookOf = (groups) => (name) => (groups ? look.groups : look.runs).get(name);

  const lights = new Map(); // spotlight of each chart, so that colours stay when a chart is drawn again
  function lightOf(names, groups, curves, higher) {
    const shown = JSON.stringify([set.value, groups, names]);
    if (!lights.has(shown)) lights.set(shown, spotlight(names, chosen(curves, higher), lookOf(groups)));
    return lights.get(shown);
  }

  async function lengthChart() {
    // kind: score, domain or difference; control: the domain, or the system compared with
    const [kind, control] = compared.value.split("\n");
    const groups = together.checked || kind !== "score";
    const rows = (key) =>
      kind === "score"
        ? scoreRows(overview, set.value, key, on, together.checked)
        : { curves: comparedRows(overview, set.value, key, on, kind, control), constant: [], buckets: [] };
    const about = (key) => {
      const { title, digits, ratio } = overview.scores[key];
      return {
        ...rows(key),
        title: (kind === "difference" ? "Difference of " : "") + title,
        digits,
        zero: ["score", "domain"].includes(kind) && !ratio,
        level: kind === "difference" ? 0 : undefined,
      };
    };
    const main = about(metric.value);
    const names = lines([...main.curves, ...main.buckets], groups);
    const first = overview.scores.bleu ? "bleu" : metric.value;
    const higher = overview.scores[first].higher_is_better !== false;
    const light = lightOf(names, groups, rows(first).curves, higher);
    const lit = (rows) => rows.filter(({ series }) => light.lit(series));
    // Grey lines come first, below the others. Only lines in colour have bands, points and dashed curves.
    const drawn = (part) => ({
      ...part,
      curves: [
        ...part.curves
          .filter(({ series }) => !light.lit(series))
          .map((row) => ({ ...row, low: null, high: null, grey: true })),
        ...lit(part.curves),
      ],
      constant: lit(part.constant),
      buckets: lit(part.buckets),
    });
    const element = byId("length-chart");
    const parts =
      metric.value === "bleu" && kind !== "domain"
        ? ["brevity_penalty", "bleu_precisions"].filter((key) => overview.scores[key])
        : [];
    const common = {
      caps: caps(overview, on),
      names,
      look: light.look,
      bands: bands.checked,
      width: chartWidth(element),
      theme: theme(),
      unit: overview.sets[set.value].unit,
      axis: overview.sets[set.value].axis,
    };
    byId("length-empty").hidden = names.length > 0;
    await draw(
      element,
      names.length
        ? lengthSpec({
            ...drawn(main),
            ...common,
            counts: bucketCounts(overview, set.value, metric.value),
            parts: parts.map(about).map(drawn),
          })
        : null,
    );
    legend(byId("length-legend"), names.filter(light.lit), light.look);
    byId("length-grey").hidden = names.every(light.lit);
    byId("length-section").classList.toggle("many", names.length > MANY);
    for (const table of document.querySelectorAll(
      `[data-set="${CSS.escape(set.value)}"] table.sortable[id^="retention"]`,
    )) {
      if (names.length <= MANY) continue;
      markRows(table, light, names, { switched: lengthChart, hovered: (name) => hover(element, name) });
      const rows = [...table.tBodies[0].rows];
      const ofScore = (row) => row.cells[1].textContent === overview.scores[metric.value].title;
      for (const row of rows) row.hidden = rows.some(ofScore) && !ofScore(row);
    }
    const table = main.buckets.length
      ? main.buckets
      : main.curves.map((row) => ({ ...row, bucket: Number(row.words.toPrecision(3)) }));
    dataTable(byId("length-data"), table, "bucket", names, main.digits);
    byId("length-note").textContent =
      { score: overview.sets[set.value].caption, domain: domainCaption(control) }[kind] ??
      comparedCaption(control, overview.level);
  }
  async function trainingChart() {
    const rows = trainingRows(overview, training.value, on, together.checked);
    const names = lines(rows, together.checked);
    const element = byId("training-chart");
    const look = lookOf(together.checked);
    await draw(
      element,
      names.length
        ? trainingSpec({
            rows,
            names,
            look,
            title: TRAINING[training.value],
            width: chartWidth(element),
            theme: theme(),
          })
        : null,
    );
    legend(byId("training-legend"), names, look);
    dataTable(byId("training-data"), rows, "update", names, 3);
  }
  const charts = () => Promise.all([scored ? lengthChart() : null, training.value ? trainingChart() : null]);

  // Tables
  const ofSet = (rows) => rows.filter((row) => row.set === set.value);
  function metrics() {
    const titled = (keys) =>
      Object.keys(overview.scores)
        .filter((key) => keys.has(key))
        .map((key) => [key, overview.scores[key].title]);
    setOptions(metric, titled(new Set(ofSet(overview.buckets).map(({ key }) => key))));
    setOptions(tested, titled(new Set(ofSet(overview.differences).map(({ score }) => score))));
    const { controls, domains } = overview.sets[set.value];
    setOptions(compared, [
      ["score", "the score"],
      ...domains.map((name) => [`domain\n${name}`, domainTitle(name)]),
      ...controls.map((name) => [`difference\n${name}`, `minus ${name}`]),
    ]);
    byId("compared-field").hidden = controls.length < 2 && !domains.length;
  }
  function significance() {
    const rows = ofSet(overview.differences).filter(({ score }) => score === tested.value);
    const labels = overview.runs.map(({ label }) => label).filter((label) => on.has(label));
    const { unit } = overview.sets[set.value];
    matrix(rows, bucket, overview.scores[tested.value], overview.level, labels, unit);
  }
  function changed() {
    byId("run-count").textContent = `${on.size} of ${overview.runs.length} runs shown`;
    for (const block of document.querySelectorAll("[data-set]"))
      block.hidden = block.dataset.set !== set.value;
    for (const part of document.querySelectorAll("[data-run]")) part.hidden = !on.has(part.dataset.run);
    if (scored) significance();
    for (const listener of listeners) listener();
    return charts();
  }

  setOptions(
    set,
    Object.entries(overview.sets).map(([name, { title }]) => [name, title]),
  );
  setOptions(
    training,
    Object.entries(TRAINING).filter(([key]) => known(key)),
  );
  if (scored) metrics();
  for (const part of ["length", "scores", "significance", "translations"])
    byId(`${part}-section`)?.toggleAttribute("hidden", !scored);
  byId("training-curve").hidden = !training.value;
  byId("training-section").hidden =
    !training.value && !document.querySelector("#training-section table.sortable");
  byId("grouped-field").hidden = !seeded;
  byId("set-field").hidden = Object.keys(overview.sets).length < 2;
  together.checked = seeded && overview.runs.length > 4;
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  byId("all-on").addEventListener("click", () => everything(true));
  byId("all-off").addEventListener("click", () => everything(false));
  set.addEventListener("change", () => {
    metrics();
    changed();
  });
  for (const control of [metric, bands, compared]) control.addEventListener("change", lengthChart);
  training.addEventListener("change", trainingChart);
  together.addEventListener("change", changed);
  for (const control of [tested, bucket]) control.addEventListener("change", significance);
  onResize(byId("configuration-section"), charts);
  return { changed, on, set, redraw: charts, listen: (listener) => listeners.push(listener) };
}
