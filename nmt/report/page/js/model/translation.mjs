// Translates one sentence (nmt/inference/model.py): text to words to symbols, search, and a record of every
// step as in alignments/<set>.jsonl. I target words, J source words, both with </s> as the last.

import { detokeniser, tokeniser } from "./moses.mjs";
import { Network } from "./network.mjs";
import { beamSearch } from "./search.mjs";
import { UNKNOWN, vocabularyOf } from "./vocabulary.mjs";

// a source word j counts as not read if Σ_i expected_i α_ij (see `record`) is below this value
const LEAST_READ = 0.2;

/** A model from the bytes of a run's `live.bin` (`nmt.inference.live_export`): its description as a line
 * of JSON, then a signed byte for every entry of the matrices, then 32-bit floats: the scale of every row
 * of a matrix, and every entry of a vector. `about.tensors` has names and shapes in that order. */
export function readModel(bytes) {
  const end = bytes.indexOf("\n".charCodeAt(0)) + 1;
  const about = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const entries = sum(
    about.tensors.map(([, [rows, columns]]) => (columns === undefined ? 0 : rows * columns)),
  );
  const codes = new Int8Array(bytes.buffer, bytes.byteOffset + end, entries);
  const numbers = new Float32Array(bytes.slice(end + entries).buffer);
  const tensors = {};
  let [code, number] = [0, 0];
  for (const [name, [rows, columns]] of about.tensors) {
    const own = numbers.subarray(number, number + rows); // a vector, or the scales of a matrix
    number += rows;
    tensors[name] = own;
    if (columns === undefined) continue;
    tensors[name] = { data: new Float32Array(rows * columns), columns };
    for (let i = 0; i < rows * columns; i++)
      tensors[name].data[i] = codes[code + i] * own[Math.floor(i / columns)];
    code += rows * columns;
  }
  return new TrainedModel(about, tensors);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

class TrainedModel {
  constructor(about, tensors) {
    this.about = about;
    this.network = new Network(about, tensors);
    this.source = vocabularyOf(about.source_vocabulary);
    this.target = vocabularyOf(about.target_vocabulary);
    this.tokenise = tokeniser(about.rules.source);
    this.detokenise = detokeniser(about.rules.target);
  }

  /** The words of a text, and whether the model knows each word. */
  read(text) {
    const words = this.tokenise(text);
    return { words, known: this.source.known(words) };
  }

  /** The words that ids spell, without </s>. */
  spell(ids) {
    return this.target.spelt(ids).map(([word]) => word);
  }

  /** A generator that yields the ids so far at each step, and returns the translation's record; null for a
   * text without words.
   *
   * @param settings {beam_size, attention, replace_unk}
   * @param prefix ids of words that the translation must begin with
   */
  *translate(text, settings, prefix = []) {
    const { words } = this.read(text);
    if (words.length === 0) return null;
    this.network.mode = settings.attention;
    const source = this.source.encode(words);
    const best = yield* beamSearch(
      this.network,
      source,
      { ...this.about.search, beam_size: settings.beam_size },
      prefix,
    );
    return this.record(words, source, best, settings.replace_unk);
  }

  record(words, source, best, replace) {
    const { steps, memory } = best;
    const [ids, logProbabilities, others] = ["id", "logProbability", "others"].map((name) =>
      steps.map((step) => step[name]),
    );
    const spelt = this.target.spelt(ids.slice(0, -1));
    const sizes = [...spelt.map(([, size]) => size), 1];
    const starts = sizes.map((_, i) => sum(sizes.slice(0, i)));
    const perWord = (values) => starts.map((at, i) => sum(values.slice(at, at + sizes[i])));
    const sourceSizes = [...this.source.spelt(source.slice(0, -1)).map(([, size]) => size), 1];
    const attention = this.network.attends ? steps.map((step) => step.weights) : null;
    const weights = attention && wordWeights(attention, sourceSizes, sizes);
    const written = spelt.map(([word]) => word);
    const dictionary = replace === "dictionary" ? this.about.dictionary : null;
    const replaced = written.map((word, i) =>
      weights && replace !== "none" && ids[starts[i]] === UNKNOWN
        ? replacement(weights[i], words, dictionary)
        : word,
    );
    // the probability of each word, divided by the largest probability at its step
    const expected = perWord(logProbabilities.map((p, at) => Math.min(0, p - others[at][0].total))).map(
      Math.exp,
    );
    return {
      source: [...words, "</s>"],
      known: this.source.known(words),
      target: [...replaced, "</s>"],
      written: [...written, "</s>"],
      ids,
      starts,
      text: this.detokenise(replaced),
      log_probability: best.logProbability,
      finished: best.finished,
      perWord: sum(logProbabilities) / sizes.length,
      word_log_probabilities: perWord(logProbabilities),
      runners_up: starts.map((at) => others[at].map(({ word, total }) => [this.target.symbol(word), total])),
      others: starts.map((at) => others[at].map(({ word }) => word)),
      weights,
      log_normaliser: weights && starts.map((at) => steps[at].logNormaliser),
      unread:
        weights &&
        words.flatMap((_, j) =>
          sum(weights.slice(0, -1).map((row, i) => expected[i] * row[j])) < LEAST_READ ? [j] : [],
        ),
      states: weights ? null : memory.annotations.data,
    };
  }
}

/** Turns weights (T, S) of symbols into weights (I, J) of words: sums over the symbols of a source word,
 * means over the symbols of a target word.
 *
 * @param sourceSizes (J) symbols of each source word
 * @param targetSizes (I) symbols of each target word
 */
function wordWeights(weights, sourceSizes, targetSizes) {
  let row = 0;
  return targetSizes.map((count) => {
    const mean = new Array(sourceSizes.length).fill(0);
    for (const step of weights.slice(row, row + count)) {
      let at = 0;
      sourceSizes.forEach((size, j) => {
        for (let n = 0; n < size; n++) mean[j] += step[at++] / count;
      });
    }
    row += count;
    return mean;
  });
}

/** The source word with the largest weight, except `</s>`; or its translation, if the dictionary has one. */
function replacement(weights, words, dictionary) {
  const word = words[weights.indexOf(Math.max(...weights.slice(0, -1)))];
  return dictionary && Object.hasOwn(dictionary, word) ? dictionary[word] : word;
}
