// Describes one decoding: its weights, attention scores and entropy, and each step in words. Sorts sentences.
// A decoding is a record of alignments/<set>.jsonl, or the output of a model in the page.
//
// Legend: S source words (with </s>), T target words (with </s>); i a target step, j a source position.

import { fixed, percent } from "./format.mjs";

export const sum = (values) => values.reduce((total, value) => total + value, 0);

export const mean = (values) => sum(values) / values.length;

/** The score e_ij = log α_ij + log Z_i as text, where Z_i = Σ_j exp e_ij; a dash if α_ij is too small. */
export function energyText(weight, logNormaliser) {
  const known = logNormaliser !== undefined && logNormaliser !== null && weight >= 5e-5;
  return known ? fixed(Math.log(weight) + logNormaliser, weight < 0.001 ? 1 : 2) : "–";
}

/** Entropy of weights in nats: 0 if one word has all the weight, log S if all S weights are equal. */
export const entropy = (weights) => -sum(weights.map((w) => (w > 0 ? w * Math.log(w) : 0)));

/** As text: the entropy of a step's weights (`nats`, if it is known), and the entropy of equal weights. */
export const totals = (weights, nats = entropy(weights)) =>
  `entropy ${fixed(nats)} nats (uniform: ${fixed(Math.log(weights.length))})`;

/** Positions of the largest weights, largest first: at most `most` positions, with weights of at least
 * `least`. The largest weight is always included. */
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

/** The context Σ_j α_ij h_j as text: terms with the largest weights, then the sum of all other weights. */
export function expectationText({ source, weights }, i) {
  if (!weights) return "c = →h of </s>, the last state of the encoder: the same vector at every step";
  const terms = largest(weights[i], 4, 0.01);
  const rest = 1 - sum(terms.map((j) => weights[i][j]));
  const parts = terms.map((j) => `${fixed(weights[i][j])} h(${source[j]})`);
  return [...parts, ...(rest >= 0.005 ? [`${fixed(rest)} for other words`] : [])].join(" + ");
}

/** The largest difference in sentence BLEU between two runs; without BLEU, in log-probability per word. */
export function difference(sentence) {
  const runs = Object.values(sentence.by);
  const bleu = runs.map((run) => run.bleu).filter((value) => value !== null && value !== undefined);
  const values =
    bleu.length > 1
      ? bleu
      : runs
          .filter((run) => run.log_probability !== null)
          .map((run) => run.log_probability / run.target.length);
  return values.length > 1 ? Math.max(...values) - Math.min(...values) : 0;
}

/** Sorts sentences by `length`, or by `difference` between runs (largest first). */
export function ordered(sentences, by) {
  const value = by === "length" ? ({ length }) => length : (sentence) => -difference(sentence);
  const keyed = sentences.map((sentence) => [value(sentence), sentence]);
  keyed.sort((a, b) => a[0] - b[0] || a[1].length - b[1].length || a[1].id - b[1].id);
  return keyed.map(([, sentence]) => sentence);
}
