import assert from "node:assert/strict";
import { test } from "node:test";
import { fallsRows, sweepRows } from "../../../../nmt/report/page/js/falls.mjs";

const group = (runs, cap, slope) => ({ runs, cap, points: [[3, 40, 20], [8, 38, 25]], line: [[3, 40.5], [8, 37.5]], verdicts: [], figures: { all: slope, score: [30, null, null] } });
const SCORE = { groups: { "a 64": group(["a1", "a2"], 50, [-2, -3, -1]), "a 256": group(["b1"], 50, [-1, -1.5, 0]), moses: group(["m"], null, null) } };

test("groups are drawn while one of their runs is on", () => {
  const rows = fallsRows(SCORE, new Set(["a2", "m"]));
  assert.deepEqual(rows.names, ["a 64", "moses"]);
  assert.equal(rows.points.length, 4);
  assert.deepEqual(rows.lines[1], { series: "a 64", piece: 0, words: 8, value: 37.5 });
  assert.deepEqual(rows.caps, [{ words: 50 }]);
  assert.deepEqual(fallsRows(undefined, new Set()).names, []);
});

test("a swept key's values stand in the order of numbers, without runs that lack key or slope", () => {
  const swept = { values: { a1: "256", a2: "256", b1: "64" } };
  const on = new Set(["a1", "b1", "m"]);
  const { rows, places } = sweepRows(SCORE, swept, "all", on);
  assert.deepEqual(places, ["64", "256"]);
  assert.deepEqual(rows[0], { series: "a 64", place: "256", value: -2, low: -3, high: -1 });
  assert.equal(rows.length, 2);
  assert.equal(sweepRows(SCORE, { values: { a1: "dot", b1: "additive" } }, "score", on).places[0], "additive");
});
