import assert from "node:assert/strict";
import { test } from "node:test";
import * as a from "../../../../nmt/report/page/js/alignment.mjs";

const code = (weight) => Math.round(a.WEIGHT_SCALE * Math.sqrt(weight));
const packed = (target, weights, rest = {}) => ({ target, w: weights?.flat().map(code), ...rest });
const SOURCE = ["European", "Economic", "Area", "</s>"];
const TURNED = [[0.05, 0.24, 0.71, 0], [0.1, 0.8, 0.1, 0], [0.9, 0.1, 0, 0], [0, 0, 0.02, 0.98]];
const turned = () => a.unpackDecoding(packed(["zone", "économique", "européenne", "</s>"], TURNED), SOURCE);

test("weights come back a row a step", () => {
  const { weights } = turned();
  assert.equal(weights.length, 4);
  assert.ok(Math.abs(weights[0][2] - 0.71) < 5e-4);
  assert.ok(Math.abs(a.sum(weights[0]) - 1) < 2e-3);
  assert.equal(a.unpackDecoding(packed(["x"], null), SOURCE).weights, null);
});

test("another tokenisation brings its own source", () => {
  const decoding = a.unpackDecoding({ target: ["x"], w: [code(1), 0], source: ["a", "b"] }, SOURCE);
  assert.deepEqual(decoding.source, ["a", "b"]);
  assert.deepEqual(decoding.weights, [[1, 0]]);
});

test("energies are log weight plus log normaliser, none for no weight", () => {
  const [first, second, none] = a.energies([0.5, 0.25, 0], 2);
  assert.ok(Math.abs(first - (Math.log(0.5) + 2)) < 1e-12);
  assert.ok(Math.abs(first - second - Math.LN2) < 1e-12);
  assert.equal(none, null);
  assert.ok(Math.abs(a.leastEnergy({ z: [3, 4] }, 1) - (Math.log((0.5 / a.WEIGHT_SCALE) ** 2) + 4)) < 1e-12);
  for (const [code, digits] of [[1, 0], [4, 0], [5, 1], [49, 1], [50, 2], [2000, 2]]) {
    assert.equal(a.energyDigits((code / a.WEIGHT_SCALE) ** 2), digits);
  }
  assert.ok(Math.abs(a.leastEnergy({ z: [3], floor: 0.001 }, 0) - (Math.log(0.001) + 3)) < 1e-12);
});

test("the entropy is in nats", () => {
  assert.equal(Math.abs(a.entropy([1, 0, 0])), 0);
  assert.ok(Math.abs(a.entropy([0.25, 0.25, 0.25, 0.25]) - Math.log(4)) < 1e-12);
});

test("a step is said in words", () => {
  assert.equal(a.inWords(turned(), 0), "writing zone, reads Area 71\u202f%, Economic 24\u202f%");
  assert.equal(a.inWords(turned(), 3), "ending the sentence, reads </s> 98\u202f%");
  const fixed = a.unpackDecoding(packed(["zone", "</s>"], null), SOURCE);
  assert.equal(a.inWords(fixed, 0), "writing zone, reads the one fixed vector of the whole sentence");
});

test("the context is the expected annotation, with what is left over", () => {
  assert.equal(a.expectationText(turned(), 0), "0.71 h(Area) + 0.24 h(Economic) + 0.05 h(European)");
  const wide = a.unpackDecoding(packed(["x"], [[0.2, 0.2, 0.2, 0.2, 0.2]]), ["a", "b", "c", "d", "</s>"]);
  assert.equal(a.expectationText(wide, 0), "0.20 h(a) + 0.20 h(b) + 0.20 h(c) + 0.20 h(d) + 0.20 of the others");
});

test("diagonals and phrases turned round are told apart", () => {
  const eye = [0, 1, 2, 3, 4].map((i) => [0, 1, 2, 3, 4].map((j) => (i === j ? 0.9 : 0.025)));
  const straight = a.unpackDecoding(packed(["a", "b", "c", "d", "</s>"], eye), ["v", "w", "x", "y", "</s>"]);
  assert.equal(a.diagonality(straight), 1);
  assert.equal(a.reordering(straight).mass, 0);
  const found = a.reordering(turned());
  assert.deepEqual([found.from, found.to], [0, 2]);
  assert.ok(Math.abs(found.mass - (0.71 + 0.8 + 0.9)) < 3e-3);
  assert.deepEqual(a.path(turned()), [2, 1, 0, 3]);
});

function sentence(id, length, order, extra = {}) {
  const source = [...Array.from({ length }, (_, j) => `s${j}`), "</s>"];
  const steps = [...order, length];
  const weights = steps.map((j) => source.map((_, k) => (k === j ? 0.9 : 0.1 / length)));
  return { id, length, source, by: { search: packed(steps.map((j) => `t${j}`), weights, { bleu: 40, score: -4 }), ...extra } };
}

test("presets choose the diagonal, the phrase turned round and the longest", () => {
  const other = { encdec: { target: ["x"], bleu: 10, score: -9 } };
  const sentences = [
    sentence(1, 6, [0, 1, 2, 3, 4, 5]),
    sentence(2, 8, [0, 3, 2, 1, 4, 5, 6, 7], other),
    sentence(3, 40, [...Array(40).keys()]),
  ];
  const found = a.presets(sentences);
  assert.equal(found.words.id, 1);
  assert.equal(found.reordered.sentence.id, 2);
  assert.equal(found.reordered.step, 1);
  assert.equal(found.long.id, 3);
  assert.deepEqual(a.presets([{ ...sentences[0], by: { e: { target: ["x"] } } }]).words, null);
});

test("sentences sort by length, by difference between runs, by entropy", () => {
  const wide = sentence(5, 5, [0, 1, 2, 3, 4]);
  wide.by.search.w = wide.by.search.w.map(() => code(1 / 6));
  const apart = sentence(6, 7, [0, 1, 2, 3, 4, 5, 6], { encdec: { target: ["x"], bleu: 12.5, score: -9 } });
  const sentences = [apart, wide, sentence(4, 9, [...Array(9).keys()])];
  assert.equal(a.difference(apart), 27.5);
  assert.deepEqual(a.ordered(sentences, "length").map((s) => s.id), [5, 6, 4]);
  assert.deepEqual(a.ordered(sentences, "difference").map((s) => s.id), [6, 5, 4]);
  assert.equal(a.ordered(sentences, "entropy")[0].id, 5);
});
