// Words to ids and back (nmt/data/vocabulary.py). 0 is </s>, 1 is <unk>.

import { SPACE } from "./moses.mjs";

const SPECIAL = ["</s>", "<unk>"];
export const END = 0;
export const UNKNOWN = 1;
const START = "Ġ"; // begins the first subword of a word
const SPACES = new RegExp(`[${SPACE}]`, "gu");

export const vocabularyOf = (state) =>
  state.kind === "words" ? new WordVocabulary(state.words) : new BpeVocabulary(state);

/** A shortlist: word i has the id i + 2. */
class WordVocabulary {
  constructor(words) {
    this.words = words;
    this.ids = new Map(words.map((word, i) => [word, i + SPECIAL.length]));
  }

  encode(tokens) {
    return [...tokens.map((token) => this.ids.get(token) ?? UNKNOWN), END];
  }

  /** One flag per word: whether it is in the list. */
  known(tokens) {
    return tokens.map((token) => this.ids.has(token));
  }

  symbol(id) {
    return SPECIAL[id] ?? this.words[id - SPECIAL.length];
  }

  /** The words that ids spell, each with the number of its ids. */
  spelt(ids) {
    return ids.map((id) => [this.symbol(id), 1]);
  }
}

/** Byte-pair encoding within words; no word is unknown. */
class BpeVocabulary {
  constructor({ subwords, merges }) {
    this.subwords = subwords;
    this.ids = new Map(subwords.map((subword, i) => [subword, i + SPECIAL.length]));
    this.ranks = new Map(
      merges.map(([first, second], rank) => [`${subwords[first]} ${subwords[second]}`, rank]),
    );
    this.bytes = byteOfSymbol();
    this.symbols = new Map([...this.bytes].map(([symbol, byte]) => [byte, symbol]));
  }

  encode(tokens) {
    return [
      ...tokens.flatMap((token) => this.split(token).map((subword) => this.ids.get(subword) ?? UNKNOWN)),
      END,
    ];
  }

  /** The subwords of a word: the neighbouring pair that was learnt first is merged first. */
  split(token) {
    const bytes = new TextEncoder().encode(` ${token.replace(SPACES, " ")}`);
    const parts = Array.from(bytes, (byte) => this.symbols.get(byte));
    for (;;) {
      let best = Infinity;
      let place = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, place] = [rank, i];
      }
      if (place < 0) return parts;
      parts.splice(place, 2, parts[place] + parts[place + 1]);
    }
  }

  known(tokens) {
    return tokens.map(() => true);
  }

  symbol(id) {
    return SPECIAL[id] ?? (this.text(this.subwords[id - SPECIAL.length]) || START);
  }

  /** The words that ids spell, each with the number of its ids; U+FFFD for bytes that are no character. */
  spelt(ids) {
    const subword = (id) => this.subwords[id - SPECIAL.length];
    const starts = (i) => i === 0 || ids[i] < 2 || ids[i - 1] < 2 || subword(ids[i]).startsWith(START);
    const words = [];
    ids.forEach((id, i) => {
      if (starts(i)) words.push([]);
      words.at(-1).push(id);
    });
    return words.map((own) => {
      if (own[0] < 2) return [SPECIAL[own[0]], own.length];
      return [this.text(own.map(subword).join("")).replace(SPACES, "\ufffd") || "\ufffd", own.length];
    });
  }

  text(symbols) {
    const spelt = symbols.startsWith(START) ? symbols.slice(START.length) : symbols;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(
      Uint8Array.from(spelt, (symbol) => this.bytes.get(symbol)),
    );
  }
}

/** Maps symbols to bytes. Byte-level models have a printable symbol for each byte: itself, if printable. */
function byteOfSymbol() {
  const printable = (byte) =>
    (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || (byte >= 174 && byte < 256);
  const found = new Map();
  let others = 0;
  for (let byte = 0; byte < 256; byte++)
    found.set(String.fromCodePoint(printable(byte) ? byte : 256 + others++), byte);
  return found;
}
