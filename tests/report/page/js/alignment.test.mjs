import assert from "node:assert/strict";
import { test } from "node:test";
import * as a from "../../../../nmt/report/page/js/alignment.mjs";

const decoded = (target, weights, rest = {}) => ({ source: SOURCE, target, weights, ...rest });
const SOURCE = ["European", "Economic", "Area", "</s>"];
const TURNED = [
  [0.05, 0.24, 0.71, 0],
  [0.1, 0.8, 0.1, 0],
  [0.9, 0.1, 0, 0],
  [0, 0, 0.02, 0.98],
];
const turned = decoded(["zone", "économique", "européenne", "</s>"], TURNED);
const near = (value, wanted, within = 1e-12) =>
  assert.ok(Math.abs(value - wanted) < within, `${value} is not ${wanted}`);

test("energies are log weight plus log normaliser; the entropy is in nats", () => {
  assert.equal(a.energyText(0.5, 2), (Math.log(0.5) + 2).toFixed(2));
  assert.equal(a.energyText(0.0005, 3), "−4.6");
  assert.equal(a.energyText(0, 2), "–");
  assert.equal(a.energyText(0.5, undefined), "–");
  near(a.entropy([1, 0, 0]), 0);
  near(a.entropy([0.25, 0.25, 0.25, 0.25]), Math.log(4));
});

test("a step and its context are described in words", () => {
  assert.equal(a.inWords(turned, 0), "writing zone, reads Area 71\u202f%, Economic 24\u202f%");
  assert.equal(a.inWords(turned, 3), "ending the sentence, reads </s> 98\u202f%");
  const fixed = decoded(["zone", "</s>"], null);
  assert.equal(a.inWords(fixed, 0), "writing zone, reads the one fixed vector of the whole sentence");
  assert.equal(a.expectationText(turned, 0), "0.71 h(Area) + 0.24 h(Economic) + 0.05 h(European)");
  const wide = decoded(["x"], [[0.2, 0.2, 0.2, 0.2, 0.2]], { source: ["a", "b", "c", "d", "</s>"] });
  assert.equal(
    a.expectationText(wide, 0),
    "0.20 h(a) + 0.20 h(b) + 0.20 h(c) + 0.20 h(d) + 0.20 for other words",
  );
});

test("sentences sort by length and by difference between runs", () => {
  const sentence = (id, length, by) => ({ id, length, by });
  const apart = sentence(6, 7, { search: { bleu: 40 }, encdec: { bleu: 12.5 } });
  const unscored = sentence(5, 5, {
    a: { bleu: null, log_probability: -4, target: ["x", "y"] },
    b: { log_probability: -9, target: ["x"] },
  });
  const sentences = [
    apart,
    unscored,
    sentence(4, 9, { search: { bleu: 40, log_probability: -4, target: ["x"] } }),
  ];
  assert.deepEqual(sentences.map(a.difference), [27.5, 7, 0]);
  assert.deepEqual(
    a.ordered(sentences, "length").map(({ id }) => id),
    [5, 6, 4],
  );
  assert.deepEqual(
    a.ordered(sentences, "difference").map(({ id }) => id),
    [6, 5, 4],
  );
});
