// What one decoding says: weights, energies, entropy, the step in words, and which sentences are worth a look. A decoding is
// a line of alignments/<set>.jsonl, or what a model of the page wrote.
//
// Legend: S source words (with </s>), T target words (with </s>); i a target step, j a source position.

import { fixed, percent } from "./format.mjs";

export const sum = (values) => values.reduce((total, value) => total + value, 0);

export const mean = (values) => sum(values) / values.length;

/** e_ij = log α_ij + log Z_i as text; a dash for a weight too small to tell. */
export function energyText(weight, logNormaliser) {
  const known = logNormaliser !== undefined && logNormaliser !== null && weight >= 5e-5;
  return known ? fixed(Math.log(weight) + logNormaliser, weight < 0.001 ? 1 : 2) : "–";
}

/** Entropy of the weights in nats: 0 for one word, log S if all are equal. */
export const entropy = (weights) => -sum(weights.map((w) => (w > 0 ? w * Math.log(w) : 0)));

/** Positions by falling weight, at least `least` each, at most `most` of them; always the first. */
export function largest(weights, most = 3, least = 0.1) {
  const order = Array.from(weights, (_, j) => j).sort((a, b) => weights[b] - weights[a] || a - b);
  return order.filter((j, rank) => rank === 0 || (rank < most && weights[j] >= least));
}

/** The step in words: "writing zone, reads Area 71 %, Economic 20 %". */
export function inWords({ source, target, weights }, i) {
  const writing = target[i] === "</s>" ? "ending the sentence" : `writing ${target[i]}`;
  if (!weights) return `${writing}, reads the one fixed vector of the whole sentence`;
  const read = largest(weights[i]).map((j) => `${source[j]} ${percent(weights[i][j])}`);
  return `${writing}, reads ${read.join(", ")}`;
}

/** The context as the expected annotation: the terms of the largest weights, and the weight of the rest. */
export function expectationText({ source, weights }, i) {
  if (!weights) return "c = →h of </s>, the last state of the encoder: the same vector at every step";
  const terms = largest(weights[i], 4, 0.01);
  const rest = 1 - sum(terms.map((j) => weights[i][j]));
  const parts = terms.map((j) => `${fixed(weights[i][j])} h(${source[j]})`);
  return [...parts, ...(rest >= 0.005 ? [`${fixed(rest)} of the others`] : [])].join(" + ");
}

/** Position of the largest weight at each step but the last; empty without attention. */
export const path = ({ weights }) => (weights ?? []).slice(0, -1).map((row) => row.indexOf(Math.max(...row)));

/** Share of steps that read the word right after the one before: 1 on a clean diagonal. */
export function diagonality(decoding) {
  const steps = path(decoding);
  return steps.length < 4 ? 0 : mean(steps.map((j, i) => Number(j === (i === 0 ? 0 : steps[i - 1] + 1))));
}

/** How clearly a phrase is written in another order than it is read: the mass on the longest run of steps backwards. */
export function reordering(decoding) {
  const steps = path(decoding);
  let best = { mass: 0, from: 0, to: 0 };
  let from = 0;
  for (let i = 1; i <= steps.length; i++) {
    if (i < steps.length && steps[i] === steps[i - 1] - 1) continue;
    const mass = i - from > 1 ? sum(steps.slice(from, i).map((j, k) => decoding.weights[from + k][j])) : 0;
    if (mass > best.mass) best = { mass, from, to: i - 1 };
    from = i;
  }
  return best;
}

export const meanEntropy = (decoding) => mean(decoding.attention_entropy ?? decoding.weights.map(entropy));

/** Difference between runs on a sentence: the range of their sentence BLEU, else of their scores per word. */
export function difference(sentence) {
  const runs = Object.values(sentence.by);
  const bleu = runs.map((run) => run.bleu).filter((value) => value !== null && value !== undefined);
  const values = bleu.length > 1 ? bleu : runs.filter((run) => run.score !== null).map((run) => run.score / run.target.length);
  return values.length > 1 ? Math.max(...values) - Math.min(...values) : 0;
}

/** The decoding of a sentence by the first run with attention, if any. */
export const attended = (sentence) => Object.values(sentence.by).find((run) => run.weights);

/** Sentence of each preset: {words, reordered, long}: {sentence, step}, or missing. */
export function presets(sentences) {
  const highest = (value) => sentences.reduce((best, sentence) => {
    const found = { sentence, step: 0, ...value(sentence) };
    return found.value > (best?.value ?? 0) ? found : best;
  }, undefined);
  const clear = ({ length, ...sentence }) => (length >= 4 && length <= 30 ? attended(sentence) : undefined);
  return {
    // of two clean diagonals the longer says more
    words: highest((sentence) => (clear(sentence) ? { value: diagonality(clear(sentence)) + Math.min(sentence.length, 15) / 100 } : { value: 0 })),
    reordered: highest((sentence) => {
      const { mass, from } = reordering(clear(sentence) ?? {});
      return { value: mass, step: from };
    }),
    long: highest((sentence) => ({ value: sentence.length })),
  };
}

/** Sentences in the order asked for: `length`, `difference` (largest first) or `entropy` (widest first). */
export function ordered(sentences, by) {
  const value = {
    length: (sentence) => sentence.length,
    difference: (sentence) => -difference(sentence),
    entropy: (sentence) => (attended(sentence) ? -meanEntropy(attended(sentence)) : 1),
  }[by];
  const keyed = sentences.map((sentence) => [value(sentence), sentence]);
  keyed.sort((a, b) => a[0] - b[0] || a[1].length - b[1].length || a[1].id - b[1].id);
  return keyed.map(([, sentence]) => sentence);
}
