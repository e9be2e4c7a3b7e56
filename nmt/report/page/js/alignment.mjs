// What one kept decoding says: weights, energies, entropy, the step in words, and which sentences are worth a look.
//
// Legend: S source words (with </s>), T target words (with </s>); i a target step, j a source position.

import { fixed, percent } from "./format.mjs";

export const WEIGHT_SCALE = 2000;

/** The decoding of one run, unpacked: weights as one array a step, or null for a fixed vector. */
export function unpackDecoding(packed, source) {
  const words = packed.source ?? source;
  const steps = packed.target.length;
  const size = words.length;
  let weights = null;
  if (packed.w) {
    weights = Array.from({ length: steps }, (_, i) =>
      packed.w.slice(i * size, (i + 1) * size).map((code) => (code / WEIGHT_SCALE) ** 2),
    );
  }
  return { ...packed, source: words, weights };
}

/** Σ_j α_ij, 1 but for rounding. */
export const sum = (weights) => weights.reduce((total, weight) => total + weight, 0);

/** e_ij = log α_ij + log Z_i; null where the weight was rounded to nothing. */
export function energies(weights, logNormaliser) {
  return weights.map((weight) => (weight > 0 ? Math.log(weight) + logNormaliser : null));
}

/** What the energies are below where the weight was too small to be kept: half the smallest weight of the page, or the
 * floor that made it fit. */
export const leastEnergy = (decoding, i) => Math.log(decoding.floor ?? (0.5 / WEIGHT_SCALE) ** 2) + decoding.z[i];

/** Digits of an energy that are sure: weights are kept in steps, which are coarse where they are small. */
export const energyDigits = (weight) => [0.01, 0.1].filter((share) => 1 / (WEIGHT_SCALE * Math.sqrt(weight)) <= 2 * share).length;

/** Entropy of the weights in nats: 0 for one word, log S for all alike. */
export function entropy(weights) {
  return -weights.reduce((total, w) => total + (w > 0 ? w * Math.log(w) : 0), 0);
}

/** Positions by falling weight, at least `least` each, at most `most` of them; always the first. */
export function largest(weights, most = 3, least = 0.1) {
  const order = weights.map((_, j) => j).sort((a, b) => weights[b] - weights[a] || a - b);
  return order.filter((j, rank) => rank === 0 || (rank < most && weights[j] >= least));
}

/** The step said in words: "writing zone, reads Area 71 %, Economic 20 %". */
export function inWords(decoding, i) {
  const word = decoding.target[i];
  const writing = word === "</s>" ? "ending the sentence" : `writing ${word}`;
  if (!decoding.weights) return `${writing}, reads the one fixed vector of the whole sentence`;
  const weights = decoding.weights[i];
  const read = largest(weights).map((j) => `${decoding.source[j]} ${percent(weights[j])}`);
  return `${writing}, reads ${read.join(", ")}`;
}

/** The context as the expected annotation: terms [{weight, word}] of the largest weights, and the weight of the rest. */
export function expectation(decoding, i, most = 4) {
  const weights = decoding.weights[i];
  const terms = largest(weights, most, 0.01).map((j) => ({ weight: weights[j], word: decoding.source[j], j }));
  return { terms, rest: Math.max(0, 1 - terms.reduce((total, term) => total + term.weight, 0)) };
}

export function expectationText(decoding, i) {
  if (!decoding.weights) return `c = →h of </s>, the last state of the encoder: the same vector at every step`;
  const { terms, rest } = expectation(decoding, i);
  const parts = terms.map((term) => `${fixed(term.weight)} h(${term.word})`);
  if (rest >= 0.005) parts.push(`${fixed(rest)} of the others`);
  return parts.join(" + ");
}

/** Position of the largest weight at each step; null without attention. */
export function path(decoding) {
  return decoding.weights?.map((weights) => largest(weights, 1)[0]) ?? null;
}

/** Share of steps (without </s>) that read the word right after the one before: 1 on a clean diagonal. */
export function diagonality(decoding) {
  const steps = path(decoding)?.slice(0, -1) ?? [];
  if (steps.length < 4) return 0;
  const onward = steps.filter((j, i) => j === (i === 0 ? 0 : steps[i - 1] + 1)).length;
  return onward / steps.length;
}

/** How clearly a phrase is written in another order than it is read: the mass on the longest run of steps backwards. */
export function reordering(decoding) {
  const steps = path(decoding)?.slice(0, -1) ?? [];
  let best = { mass: 0, from: 0, to: 0 };
  let from = 0;
  for (let i = 1; i <= steps.length; i++) {
    if (i < steps.length && steps[i] === steps[i - 1] - 1) continue;
    if (i - from > 1) {
      const mass = steps.slice(from, i).reduce((total, j, k) => total + decoding.weights[from + k][j], 0);
      if (mass > best.mass) best = { mass, from, to: i - 1 };
    }
    from = i;
  }
  return best;
}

export function meanEntropy(decoding) {
  if (!decoding.weights) return null;
  const values = decoding.entropy ?? decoding.weights.map(entropy);
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** Difference between runs on a sentence: the range of their sentence BLEU, else of their scores a word. */
export function difference(sentence) {
  const range = (values) => (values.length > 1 ? Math.max(...values) - Math.min(...values) : 0);
  const runs = Object.values(sentence.by);
  const bleu = runs.map((run) => run.bleu).filter((value) => value !== null && value !== undefined);
  if (bleu.length > 1) return range(bleu);
  return range(runs.filter((run) => run.score !== null).map((run) => run.score / run.target.length));
}

/** The decoding of a sentence by the first run with attention; null where there is none. */
export function attended(sentence) {
  const packed = Object.values(sentence.by).find((run) => run.w);
  return packed ? unpackDecoding(packed, sentence.source) : null;
}

/** Sentence chosen by each preset: {words: sentence, reordered: {sentence, step}, long: sentence}, any null. */
export function presets(sentences) {
  let words = null;
  let reordered = null;
  let long = null;
  for (const sentence of sentences) {
    if (!long || sentence.length > long.length) long = sentence;
    if (sentence.length < 4 || sentence.length > 30) continue;
    const decoding = attended(sentence);
    if (!decoding) continue;
    // Of two clean diagonals the longer says more.
    const value = diagonality(decoding) + Math.min(sentence.length, 15) / 100;
    if (!words || value > words.value) words = { sentence, value };
    const turned = reordering(decoding);
    if (turned.mass > (reordered?.mass ?? 0)) reordered = { sentence, step: turned.from, mass: turned.mass };
  }
  return { words: words?.sentence ?? null, reordered, long };
}

/** Sentences in the order asked for: `length`, `difference` (largest first) or `entropy` (widest first). */
export function ordered(sentences, by) {
  const widest = (sentence) => {
    const decoding = attended(sentence);
    return decoding ? meanEntropy(decoding) : -1;
  };
  const value = { length: (s) => s.length, difference: (s) => -difference(s), entropy: (s) => -widest(s) }[by];
  const keyed = sentences.map((sentence) => [value(sentence), sentence]);
  keyed.sort((a, b) => a[0] - b[0] || a[1].length - b[1].length || a[1].id - b[1].id);
  return keyed.map(([, sentence]) => sentence);
}
