import assert from "node:assert/strict";
import { test } from "node:test";
import * as a from "../../../../nmt/report/page/js/alignment.mjs";

const decoded = (target, weights, rest = {}) => ({ source: SOURCE, target, weights, ...rest });
const SOURCE = ["European", "Economic", "Area", "</s>"];
const TURNED = [[0.05, 0.24, 0.71, 0], [0.1, 0.8, 0.1, 0], [0.9, 0.1, 0, 0], [0, 0, 0.02, 0.98]];
const turned = decoded(["zone", "économique", "européenne", "</s>"], TURNED);
const near = (value, wanted, within = 1e-12) => assert.ok(Math.abs(value - wanted) < within, `${value} is not ${wanted}`);

test("energies are log weight plus log normaliser; the entropy is in nats", () => {
  assert.equal(a.energyText(0.5, 2), (Math.log(0.5) + 2).toFixed(2));
  assert.equal(a.energyText(0.0005, 3), "−4.6");
  assert.equal(a.energyText(0, 2), "–");
  assert.equal(a.energyText(0.5, undefined), "–");
  near(a.entropy([1, 0, 0]), 0);
  near(a.entropy([0.25, 0.25, 0.25, 0.25]), Math.log(4));
});

test("a step and its context are told in words", () => {
  assert.equal(a.inWords(turned, 0), "writing zone, reads Area 71\u202f%, Economic 24\u202f%");
  assert.equal(a.inWords(turned, 3), "ending the sentence, reads </s> 98\u202f%");
  const fixed = decoded(["zone", "</s>"], null);
  assert.equal(a.inWords(fixed, 0), "writing zone, reads the one fixed vector of the whole sentence");
  assert.equal(a.expectationText(turned, 0), "0.71 h(Area) + 0.24 h(Economic) + 0.05 h(European)");
  const wide = decoded(["x"], [[0.2, 0.2, 0.2, 0.2, 0.2]], { source: ["a", "b", "c", "d", "</s>"] });
  assert.equal(a.expectationText(wide, 0), "0.20 h(a) + 0.20 h(b) + 0.20 h(c) + 0.20 h(d) + 0.20 of the others");
});

test("diagonals and phrases turned round are told apart", () => {
  const eye = [0, 1, 2, 3, 4].map((i) => [0, 1, 2, 3, 4].map((j) => (i === j ? 0.9 : 0.025)));
  const straight = decoded(["a", "b", "c", "d", "</s>"], eye);
  assert.equal(a.diagonality(straight), 1);
  assert.equal(a.reordering(straight).mass, 0);
  const found = a.reordering(turned);
  assert.deepEqual([found.from, found.to], [0, 2]);
  near(found.mass, 0.71 + 0.8 + 0.9);
});

function sentence(id, length, order, extra = {}) {
  const source = [...Array.from({ length }, (_, j) => `s${j}`), "</s>"];
  const steps = [...order, length];
  const weights = steps.map((j) => source.map((_, k) => (k === j ? 0.9 : 0.1 / length)));
  const search = { source, target: steps.map((j) => `t${j}`), weights, bleu: 40, score: -4 };
  return { id, length, source, by: { search, ...extra } };
}

test("presets choose the diagonal, the phrase turned round and the longest", () => {
  const other = { encdec: { target: ["x"], bleu: 10, score: -9, weights: null } };
  const sentences = [
    sentence(1, 6, [0, 1, 2, 3, 4, 5]),
    sentence(2, 8, [0, 3, 2, 1, 4, 5, 6, 7], other),
    sentence(3, 40, [...Array(40).keys()]),
  ];
  const found = a.presets(sentences);
  assert.equal(found.words.sentence.id, 1);
  assert.deepEqual([found.reordered.sentence.id, found.reordered.step], [2, 1]);
  assert.deepEqual([found.long.sentence.id, found.long.step], [3, 0]);
  const fixed = a.presets([{ ...sentences[0], by: other }]);
  assert.deepEqual([fixed.words, fixed.reordered, fixed.long.sentence.id], [undefined, undefined, 1]);
});

test("sentences sort by length, by difference between runs, by entropy", () => {
  const wide = sentence(5, 5, [0, 1, 2, 3, 4]);
  wide.by.search.weights = wide.by.search.weights.map((row) => row.map(() => 1 / 6));
  const apart = sentence(6, 7, [0, 1, 2, 3, 4, 5, 6], { encdec: { target: ["x"], bleu: 12.5, score: -9, weights: null } });
  const sentences = [apart, wide, sentence(4, 9, [...Array(9).keys()])];
  assert.equal(a.difference(apart), 27.5);
  assert.deepEqual(a.ordered(sentences, "length").map((s) => s.id), [5, 6, 4]);
  assert.deepEqual(a.ordered(sentences, "difference").map((s) => s.id), [6, 5, 4]);
  assert.equal(a.ordered(sentences, "entropy")[0].id, 5);
});
