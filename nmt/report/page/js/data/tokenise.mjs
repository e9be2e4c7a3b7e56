// Text to words as Moses does it (nmt/data/tokenise.py with sacremoses' MosesTokenizer). The classes of characters and
// the words that keep their full stop come with the page.

import { SPACE, classOf, splitWords, strip } from "./characters.mjs";
import { normalise } from "./normalise.mjs";

const INVISIBLE = /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
const SPACES = new RegExp(`[${SPACE}]+`, "gu");
const JOINERS = /^[\u200c\u200d]+/u;
const JOINERS_AT_END = /[\u200c\u200d]+$/u;

/** A tokeniser: text -> words. `rules` are those of `nmt.data.tokenise.Tokeniser.rules`. */
export function tokeniser(rules) {
  const { language } = rules;
  const [alnum, alpha, number] = [rules.alnum, rules.alpha, rules.number].map(classOf);
  const inClass = (inside) => new RegExp(`[${inside}]`, "u");
  const [isAlpha, isLower, isKiller] = [inClass(alpha), inClass(classOf(rules.lower)), inClass(classOf(rules.vowel_killers))];
  const prefixes = new Set(rules.prefixes);
  const numeric = new Set(rules.numeric_prefixes);
  const apart = new RegExp(`([^${alnum}${SPACE}.'\`,\\-])`, "gu");
  const commas = [
    [new RegExp(`([^${number}]),`, "gu"), "$1 , "],
    [new RegExp(`,([^${number}])`, "gu"), " , $1"],
    [new RegExp(`([${number}]),$`, "gu"), "$1 , "],
  ];
  const apostrophes = {
    en: [
      [new RegExp(`([^${alpha}])'([^${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([^${alpha}${number}])'([${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([${alpha}])'([^${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([${alpha}])'([${alpha}])`, "gu"), "$1 '$2"],
      [new RegExp(`([${number}])'(s)`, "gu"), "$1 '$2"],
    ],
    romance: [
      [new RegExp(`([^${alpha}])'([^${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([^${alpha}])'([${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([${alpha}])'([^${alpha}])`, "gu"), "$1 ' $2"],
      [new RegExp(`([${alpha}])'([${alpha}])`, "gu"), "$1' $2"],
    ],
    other: [[/'/gu, " ' "]],
  }[{ en: "en", fr: "romance", it: "romance" }[language] ?? "other"];
  const marks = classOf(rules.marks);
  const emoji = "(?:[\\xa9\\xae\\u203c-\\u3299\\u{1f000}-\\u{1faff}][\\u{1f3fb}-\\u{1f3ff}]?)";
  // What is one character to a reader, and the private characters that stand for it in the meantime.
  const cluster = new RegExp(
    `[\\u{1f1e6}-\\u{1f1ff}]{2}|${emoji}(?:\\u200d${emoji})+|${emoji.replace("]?)", "])")}|[0-9#*]\\u20e3` +
      `|[^\\p{L}\\p{N}_${SPACE}${marks}\\u200c\\u200d][${marks}]+|[\\u{f0000}-\\u{10ffff}]`,
    "gu",
  );
  const unspaced = classOf(rules.unspaced);
  const characterEnds = unspaced && new RegExp(
    `(?<=[${unspaced}])(?![${marks}])(?=[^${SPACE}])|(?<=[^${SPACE}])(?=[${unspaced}])(?![${marks}])`, "gu");
  const replaced = (text, list) => list.reduce((said, [pattern, replacement]) => said.replace(pattern, replacement), text);

  /** A full stop is a word of its own but after abbreviations, initials, and before a small letter. */
  function fullStops(text) {
    const tokens = splitWords(text);
    tokens.forEach((token, i) => {
      if (token.length < 2 || !token.endsWith(".")) return;
      const prefix = token.slice(0, -1);
      const next = tokens[i + 1];
      const keeps =
        (prefix.includes(".") && isAlpha.test(prefix)) ||
        (prefixes.has(prefix) && !numeric.has(prefix)) ||
        (next !== undefined && isLower.test(String.fromCodePoint(next.codePointAt(0)))) ||
        (numeric.has(prefix) && next !== undefined && /^[0-9]/u.test(next));
      if (!keeps) tokens[i] = `${prefix} .`;
    });
    return tokens.join(" ");
  }

  /** None at the ends of a word, but for one after a sign that kills a vowel. */
  function withoutOuterJoiners(token) {
    const start = token.replace(JOINERS, "");
    const word = start.replace(JOINERS_AT_END, "");
    const killed = word !== start && isKiller.test([...word].at(-1) ?? "a");
    return start.slice(0, word.length + (killed ? 1 : 0));
  }

  return (line) => {
    const clusters = [];
    let text = line.replace(INVISIBLE, "").normalize("NFC");
    text = text.replace(cluster, (found) => String.fromCodePoint(0xf0000 + clusters.push(found) - 1));
    if (unspaced) text = text.replace(characterEnds, " ");
    if (rules.normalise) text = normalise(text, language);
    text = strip(text.replace(SPACES, " ").replace(/[\x00-\x1f]/gu, ""));
    text = text.replace(apart, " $1 ");
    const end = text.length;
    text = text.replace(/\.{2,}/gu, (dots, at) => ` ${"DOT".repeat(dots.length)}MULTI${at + dots.length < end ? " " : ""}`);
    text = replaced(text, commas);
    text = replaced(text, apostrophes);
    text = strip(fullStops(text).replace(SPACES, " "));
    text = text.replace(/\.' ?$/u, " . ' ");
    text = text.replace(/(?:DOT)+MULTI/gu, (marker) => ".".repeat((marker.length - 5) / 3));
    const restored = (token) => (token.length === 2 && token.codePointAt(0) >= 0xf0000 ? clusters[token.codePointAt(0) - 0xf0000] : token);
    return splitWords(text).map(restored).map(withoutOuterJoiners).filter((word) => word !== "");
  };
}
