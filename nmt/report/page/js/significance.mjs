// The matrix of differences between runs, on the whole set or in one bucket.

import { byId, h, setOptions } from "./dom.mjs";
import { fixed, pValue, signed } from "./format.mjs";

/** The tests of pairs in both directions: Map "a\nb" -> the row of a minus b. */
export function pairs(rows) {
  const turned = ({ a, b, delta, low, high, ...row }) => ({
    ...row,
    a: b,
    b: a,
    delta: -delta,
    low: high === null ? null : -high,
    high: low === null ? null : -low,
  });
  return new Map(rows.flatMap((row) => [row, turned(row)]).map((row) => [`${row.a}\n${row.b}`, row]));
}

/** The class of a significant difference; "level" if neither direction is better. */
export const verdict = (delta, higherIsBetter) =>
  higherIsBetter === null ? "level" : delta > 0 === higherIsBetter ? "better" : "worse";

/** Stars, so that significance is not shown by colour only. */
export const stars = (p) => (p === null ? "" : p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "");

/** Draws the matrix of the tests of a score in the selected bucket; `about` describes the score: {title,
 * digits, higher_is_better}, and `unit` the lengths. */
export function matrix(rows, bucket, about, level, shown, unit) {
  const buckets = [...new Set(rows.map((row) => row.bucket))];
  setOptions(
    bucket,
    buckets.map((name) => [name, name === "all" ? "the whole set" : `${name} ${unit}`]),
  );
  byId("significance-section").hidden = rows.length === 0;
  const found = pairs(rows.filter((row) => row.bucket === bucket.value));
  const tested = new Set([...found.values()].map(({ a }) => a));
  const known = shown.filter((label) => tested.has(label));
  const cell = (row, column) => {
    const pair = found.get(`${row}\n${column}`);
    if (!pair) return h("td", { class: "self", text: row === column ? "" : "–" });
    const { delta, low, high, p_corrected: p, sentences } = pair;
    const { title, digits, higher_is_better: higherIsBetter } = about;
    const text =
      `${row} minus ${column}: ${signed(delta, digits)} ${title}, ${level} interval ` +
      `${fixed(low, digits)} to ${fixed(high, digits)}, p ${pValue(p)}, ${sentences} sentences`;
    return h(
      "td",
      { class: stars(p) ? verdict(delta, higherIsBetter) : "level", title: text, "aria-label": text },
      h("b", { text: `${signed(delta, digits)}${stars(p)}` }),
      h("small", { text: `p ${pValue(p)}` }),
    );
  };
  const table = byId("significance");
  table.tHead.replaceChildren(
    h(
      "tr",
      {},
      h("td"),
      known.map((label) => h("th", { scope: "col" }, h("span", { text: label }))),
    ),
  );
  table.tBodies[0].replaceChildren(
    ...known.map((row) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", text: row }),
        known.map((column) => cell(row, column)),
      ),
    ),
  );
}
