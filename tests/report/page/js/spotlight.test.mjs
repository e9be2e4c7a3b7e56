import assert from "node:assert/strict";
import test from "node:test";

import { MANY } from "../../../../nmt/report/page/js/charts.mjs";
import { chosen, spotlight } from "../../../../nmt/report/page/js/spotlight.mjs";

const curve = (series, values) => values.map((value, i) => ({ series, words: 10 * (i + 1), value }));
const curves = [
  ...curve("good", [40, 40, 40]),
  ...curve("bad", [9, 9, 9]),
  ...curve("falls", [30, 20, 10]),
  ...curve("rises", [20, 25, 30]),
  ...curve("falls a little", [30, 28, 26]),
];

test("the best curve, the worst, and the two that get worse most are in colour", () => {
  assert.deepEqual(chosen(curves, true), ["good", "bad", "falls", "falls a little"]);
  assert.deepEqual(chosen(curves, false).slice(0, 2), ["bad", "good"]);
});

test("few lines keep their looks; of many, only those that are switched on have a colour", () => {
  const look = () => ({ colour: 3, variant: 1 });
  const few = spotlight(["a", "b"], ["a"], look);
  assert.ok(few.lit("b"));
  assert.deepEqual(few.look("b"), { colour: 3, variant: 1 });
  const names = Array.from({ length: MANY + 1 }, (_, i) => `s${i}`);
  const many = spotlight(names, ["s2", "s5"], look);
  assert.deepEqual(names.filter(many.lit), ["s2", "s5"]);
  assert.deepEqual(many.look("s5"), { colour: 1, variant: 0 });
  const grey = many.look("s0");
  assert.ok(many.toggle("s0"));
  assert.notDeepEqual(many.look("s0"), grey);
  const colours = many.look("s5");
  many.toggle("s2");
  assert.deepEqual(many.look("s5"), colours);
  assert.deepEqual(names.filter(many.lit), ["s0", "s5"]);
});

test("if there are no curves, the first eight names are in colour", () => {
  const names = Array.from({ length: MANY + 1 }, (_, i) => `s${i}`);
  const without = spotlight(names, chosen([], true), () => ({ colour: 3, variant: 1 }));
  assert.deepEqual(names.filter(without.lit), names.slice(0, MANY));
});
