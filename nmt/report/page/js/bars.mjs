// Table rows with a bar: source words and their weights, or target words and their probabilities.

import { energyText } from "./alignment.mjs";
import { h } from "./dom.mjs";
import { fixed, percent } from "./format.mjs";

export const SHOWN = 6; // maximum number of source words that are listed per step
export const LEAST = 0.001; // smallest weight of a listed word

/** A row: a name (text or an element), a bar that fills `share` (0 to 1) of its cell, and cells of text. */
export function barRow(name, share, cells, kind = null) {
  const bar = h("span", { class: "bar", style: `width: ${(100 * share).toFixed(1)}%` });
  return h(
    "tr",
    { class: kind },
    h("th", { scope: "row" }, name),
    h("td", { class: "track" }, bar),
    cells.map((text) => h("td", { text })),
  );
}

/** The row of source word j at step i. */
export function weightRow({ source, weights, log_normaliser: z }, i, j, kind = null) {
  const weight = weights[i][j];
  return barRow(source[j], weight, [fixed(weight, 3), energyText(weight, z?.[i])], kind);
}

/** The rows of step i: its target word, then its runners-up; `name(word, n)` creates runner-up n's name. */
export function runnerRows(
  { target, word_log_probabilities: own, runners_up: others },
  i,
  name = (word) => word,
) {
  const row = (word, value, kind = null) =>
    barRow(word, Math.exp(value ?? -Infinity), [value === null ? "–" : percent(Math.exp(value))], kind);
  return [
    row(target[i], own?.[i] ?? null, "own"),
    ...(others?.[i] ?? []).map(([word, value], n) => row(name(word, n), value)),
  ];
}
