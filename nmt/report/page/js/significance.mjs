// The matrix of differences between runs, on the whole set or in one bucket.

import { byId, h, setOptions } from "./dom.mjs";
import { fixed, pValue, signed } from "./format.mjs";

/** Differences by pair, both ways round: Map "a\nb" -> {delta, low, high, p, corrected, sentences}, for one bucket. */
export function pairs(rows, bucket) {
  const found = new Map();
  for (const [a, b, name, delta, low, high, p, corrected, sentences] of rows) {
    if (name !== bucket) continue;
    found.set(`${a}\n${b}`, { delta, low, high, p, corrected, sentences });
    found.set(`${b}\n${a}`, { delta: -delta, low: -high, high: -low, p, corrected, sentences });
  }
  return found;
}

/** Stars, so that significance is never told by colour alone. */
export const stars = (p) => (p === null ? "" : p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "");

export function matrix(set, labels) {
  const names = [...new Set(set.significance.map((row) => row[2]))];
  const bucket = byId("bucket");
  setOptions(bucket, names.map((name) => [name, name === "all" ? "the whole set" : `${name} words`]));
  const table = byId("significance");
  const found = pairs(set.significance, bucket.value);
  const known = labels.filter((label) => [...found.keys()].some((key) => key.startsWith(`${label}\n`)));
  byId("significance-section").hidden = set.significance.length === 0;
  const head = h("tr", {}, h("td"), known.map((label) => h("th", { scope: "col" }, h("span", { text: label }))));
  const body = known.map((row) =>
    h("tr", {}, h("th", { scope: "row", text: row }), known.map((column) => {
      const pair = found.get(`${row}\n${column}`);
      if (!pair) return h("td", { class: "self", text: row === column ? "" : "–" });
      const mark = stars(pair.corrected);
      const state = mark ? (pair.delta > 0 ? "better" : "worse") : "level";
      const said = `${row} less ${column}: ${signed(pair.delta)} BLEU, ${set.tested} interval ${fixed(pair.low)} to ${fixed(pair.high)}, p ${pValue(pair.corrected)}, ${pair.sentences} sentences`;
      return h("td", { class: state, title: said, "aria-label": said }, h("b", { text: `${signed(pair.delta)}${mark}` }), h("small", { text: `p ${pValue(pair.corrected)}` }));
    })),
  );
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...body);
}
