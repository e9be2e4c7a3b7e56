// A trained model at work on one sentence (nmt/inference/translation.py): text to words to symbols, search, and a record of
// every step as alignments/<set>.jsonl has them.

import { detokeniser } from "../data/detokenise.mjs";
import { tokeniser } from "../data/tokenise.mjs";
import { UNKNOWN, vocabularyOf } from "../data/vocabulary.mjs";
import { Translator } from "../models/translator.mjs";
import { beamSearch } from "../search/beam.mjs";
import { forceDecode } from "./force_decoding.mjs";
import { attendedWords, expectedWords, replaceUnknown, unreadWords, wordWeights } from "./words.mjs";

export class TrainedModel {
  constructor(about, tensors, rules) {
    this.about = about;
    this.model = new Translator(about, tensors);
    this.source = vocabularyOf(about.source_vocabulary);
    this.target = vocabularyOf(about.target_vocabulary);
    this.tokenise = tokeniser({ ...rules.source, normalise: about.normalise });
    this.detokenise = detokeniser(rules.target);
  }

  /** The words that a text is read as, and whether the model knows each. */
  read(text) {
    const words = this.tokenise(text);
    return { words, known: this.source.known(words) };
  }

  /** A generator of the translation's record; null for a text without words.
   *
   * @param settings {beam_size, attention, replace_unk}
   * @param prefix ids of words that the translation must begin with
   */
  * translate(text, settings, prefix = []) {
    const { words } = this.read(text);
    if (words.length === 0) return null;
    if (this.model.attends) this.model.decoder.context.mode = settings.attention;
    const source = this.source.encode(words);
    const [best] = yield* beamSearch(this.model, source, { ...this.about.search, beam_size: settings.beam_size }, prefix);
    const decoding = yield* forceDecode(this.model, source, best.tokens);
    return this.record(words, source, best, decoding, settings.replace_unk);
  }

  record(words, source, best, decoding, replace) {
    const { ids } = decoding;
    const spelt = this.target.spelt(ids.slice(0, -1));
    const sizes = [...spelt.map(([, size]) => size), 1];
    const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((total, size) => total + size, 0));
    const sourceSizes = [...this.source.spelt(source.slice(0, -1)).map(([, size]) => size), 1];
    const weights = decoding.weights && wordWeights(decoding.weights, sourceSizes, sizes);
    const unknown = starts.slice(0, -1).map((at) => ids[at] === UNKNOWN);
    const written = spelt.map(([word]) => word);
    const attended = weights && attendedWords(weights);
    const replaced = replaceUnknown(written, unknown, attended, words, replace, this.about.dictionary);
    return {
      source: [...words, "</s>"],
      known: this.source.known(words),
      target: [...replaced, "</s>"],
      written: [...written, "</s>"],
      ids,
      starts,
      text: this.detokenise(replaced),
      score: best.score,
      finished: best.finished,
      perWord: decoding.logProbabilities.reduce((total, value) => total + value, 0) / sizes.length,
      p: starts.map((at, i) => decoding.logProbabilities.slice(at, at + sizes[i]).reduce((total, value) => total + value, 0)),
      runners: starts.map((at) => decoding.others[at].flatMap(([id, value]) => [this.target.symbol(id), value])),
      others: starts.map((at) => decoding.others[at].map(([id]) => id)),
      weights,
      z: weights && starts.map((at) => decoding.logNormaliser[at]),
      unread: weights && unreadWords(weights, expectedWords(starts, sizes, decoding)),
      states: weights ? null : decoding.memory.annotations,
    };
  }
}

