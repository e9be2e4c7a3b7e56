// How a score falls with length: points and fitted lines of the groups that are shown, their slopes in words, and slopes against a swept key.

import { h, byId, setOptions } from "./dom.mjs";
import { COLOURS, chartWidth, draw, erase, legend, sample, theme } from "./plots.mjs";
import { countedWords, looks } from "./series.mjs";
import { fallsSpec, sweepSpec } from "./falls_charts.mjs";

/** Rows of the chart, of groups of which a run is on: {points, lines, caps, names}. */
export function fallsRows(score, on) {
  const shown = Object.entries(score?.groups ?? {}).filter(([, group]) => group.runs.some((run) => on.has(run)));
  return {
    names: shown.map(([name]) => name),
    points: shown.flatMap(([series, { points }]) => points.map(([words, value, sentences]) => ({ series, words, value, sentences }))),
    lines: shown.flatMap(([series, { line }]) => line.map(([words, value], end) => ({ series, piece: end >> 1, words, value }))),
    caps: [...new Set(shown.map(([, { cap }]) => cap).filter((cap) => cap !== null))].map((words) => ({ words })),
  };
}

/** Rows of the chart against a swept key: {series, place, value, low, high}, in the order of the values. */
export function sweepRows(score, swept, figure, on) {
  const rows = Object.entries(score?.groups ?? {}).flatMap(([series, group]) => {
    const run = group.runs.find((label) => on.has(label));
    const place = run === undefined ? undefined : swept?.values[run];
    const found = group.figures[figure];
    if (place === undefined || !found) return [];
    const [value, low, high] = found;
    return [{ series, place, value, low, high }];
  });
  const places = [...new Set(rows.map((row) => row.place))];
  const numbers = places.every((place) => place !== "" && Number.isFinite(Number(place)));
  places.sort((a, b) => (numbers ? Number(a) - Number(b) : a.localeCompare(b)));
  return { rows, places };
}

/** Starts the panel; `overview` is what `startOverview` returns, `data` what it was given. */
export function startFalls(falls, data, overview) {
  const look = looks(data, COLOURS);
  const lookOf = (name) => look.groups[Math.max(0, data.groups.indexOf(name))];
  const score = byId("falls-score");
  const key = byId("falls-key");
  const figure = byId("falls-figure");
  setOptions(key, falls.swept.map((entry) => [entry.key, entry.title]));
  setOptions(figure, Object.entries(falls.figures));
  byId("falls-sweep").hidden = falls.swept.length === 0;

  async function redraw() {
    const scores = falls.sets[overview.set.value] ?? {};
    const none = Object.keys(scores).length === 0; // too few sentences
    byId("falls-section").hidden = none;
    document.querySelector("a[href='#falls-section']").parentElement.hidden = none;
    setOptions(score, Object.entries(scores).map(([name, { title }]) => [name, title]));
    const found = scores[score.value];
    const rows = fallsRows(found, overview.on);
    const element = byId("falls-chart");
    const words = countedWords(data.sets[overview.set.value]);
    legend(byId("falls-legend"), rows.names, lookOf);
    byId("falls-verdicts").replaceChildren(...rows.names.map((name) => h("li", {}, sample(lookOf(name)), h("b", { text: `${name}: ` }), h("span", { text: `${found.groups[name].verdicts.join(". ")}.` }))));
    if (rows.names.length === 0) erase(element);
    else await draw(element, fallsSpec({ ...rows, look: lookOf, title: found.title, digits: found.digits, zero: found.zero, width: chartWidth(element), theme: theme(), words }));
    await redrawSweep(found);
  }
  async function redrawSweep(found) {
    const swept = falls.swept.find((entry) => entry.key === key.value);
    const element = byId("falls-sweep-chart");
    if (!swept) return;
    const { rows, places } = sweepRows(found, swept, figure.value, overview.on);
    const names = [...new Set(rows.map((row) => row.series))];
    const title = figure.value === "score" ? found?.title : `${found?.title}, ${falls.figures[figure.value]}`;
    if (names.length === 0) erase(element);
    else await draw(element, sweepSpec({ rows, places, names, look: lookOf, title, key: swept.title, digits: found.digits, width: chartWidth(element), theme: theme() }));
  }
  for (const control of [score, key, figure]) control.addEventListener("change", redraw);
  overview.listen(redraw);
  return { redraw };
}
