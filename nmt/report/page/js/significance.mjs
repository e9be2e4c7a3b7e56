// The matrix of differences between runs, on the whole set or in one bucket.

import { byId, h, setOptions } from "./dom.mjs";
import { fixed, pValue, signed } from "./format.mjs";

/** Differences by pair, both ways round: Map "a\nb" -> {delta, low, high, p, corrected, sentences}, for one bucket.
 *
 * In the rows runs stand by their number among `labels`. */
export function pairs(rows, bucket, labels) {
  const found = new Map();
  for (const [first, second, name, delta, low, high, p, corrected, sentences] of rows) {
    if (name !== bucket) continue;
    const [a, b] = [labels[first], labels[second]];
    found.set(`${a}\n${b}`, { delta, low, high, p, corrected, sentences });
    found.set(`${b}\n${a}`, { delta: -delta, low: high === null ? null : -high, high: low === null ? null : -low, p, corrected, sentences });
  }
  return found;
}

/** What a difference that is not chance says; nothing where neither way is better. */
export const verdict = (delta, higherIsBetter) =>
  higherIsBetter === null ? "level" : (delta > 0) === higherIsBetter ? "better" : "worse";

/** Stars, so that significance is never told by colour alone. */
export const stars = (p) => (p === null ? "" : p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "");

/** Draws the matrix of one score, which `about` describes ({title, digits, higher_is_better}). */
export function matrix(set, score, about, labels, shown) {
  const rows = set.significance[score] ?? [];
  const names = [...new Set(rows.map((row) => row[2]))];
  const bucket = byId("bucket");
  setOptions(bucket, names.map((name) => [name, name === "all" ? "the whole set" : `${name} words`]));
  const table = byId("significance");
  const found = pairs(rows, bucket.value, labels);
  const tested = new Set([...found.keys()].map((key) => key.slice(0, key.indexOf("\n"))));
  const known = shown.filter((label) => tested.has(label));
  byId("significance-section").hidden = rows.length === 0;
  const head = h("tr", {}, h("td"), known.map((label) => h("th", { scope: "col" }, h("span", { text: label }))));
  const body = known.map((row) =>
    h("tr", {}, h("th", { scope: "row", text: row }), known.map((column) => {
      const pair = found.get(`${row}\n${column}`);
      if (!pair) return h("td", { class: "self", text: row === column ? "" : "–" });
      const mark = stars(pair.corrected);
      const state = mark ? verdict(pair.delta, about.higher_is_better) : "level";
      const said = `${row} less ${column}: ${signed(pair.delta, about.digits)} ${about.title}, ${set.level} interval ${fixed(pair.low, about.digits)} to ${fixed(pair.high, about.digits)}, p ${pValue(pair.corrected)}, ${pair.sentences} sentences`;
      return h("td", { class: state, title: said, "aria-label": said }, h("b", { text: `${signed(pair.delta, about.digits)}${mark}` }), h("small", { text: `p ${pValue(pair.corrected)}` }));
    })),
  );
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...body);
}
