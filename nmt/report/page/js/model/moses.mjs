// Text to words and back, like Moses (nmt/text/tokenise.py with sacremoses). The classes of characters and
// the words that keep their full stop come with the model.

/** White space of Python's `re` and `str.split`, for use between the brackets of a regular expression. */
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const SPACES = new RegExp(`[${SPACE}]+`, "gu");
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");

/** Python's `str.split()`. */
const splitWords = (text) => text.split(SPACES).filter((word) => word !== "");

/** Python's `str.strip()`. */
const strip = (text) => text.replace(EDGES, "");

/** Ranges of code points [first, last, first, last, ...] for a regular expression: [97, 122] -> a-z. */
function classOf(ranges) {
  let inside = "";
  for (let i = 0; i < ranges.length; i += 2)
    inside += `\\u{${ranges[i].toString(16)}}-\\u{${ranges[i + 1].toString(16)}}`;
  return inside;
}

// Normalisation of punctuation: the rules of MosesPunctNormalizer in their order
const RULES = [
  // white space
  [/\r/gu, ""],
  [/\(/gu, " ("],
  [/\)/gu, ") "],
  [/ +/gu, " "],
  [/\) ([.!:?;,])/gu, ")$1"],
  [/\( /gu, "("],
  [/ \)/gu, ")"],
  [/(\p{Nd}) %/gu, "$1%"],
  [/ :/gu, ":"],
  [/ ;/gu, ";"],
  // quotation marks of the Penn Treebank
  [/`/gu, "'"],
  [/''/gu, ' " '],
  // quotation marks, dashes
  [/„/gu, '"'],
  [/“/gu, '"'],
  [/”/gu, '"'],
  [/–/gu, "-"],
  [/—/gu, " - "],
  [/ +/gu, " "],
  [/´/gu, "'"],
  [/([a-zA-Z])‘([a-zA-Z])/gu, "$1'$2"],
  [/([a-zA-Z])’([a-zA-Z])/gu, "$1'$2"],
  [/‘/gu, "'"],
  [/‚/gu, "'"],
  [/’/gu, "'"],
  [/''/gu, '"'],
  [/´´/gu, '"'],
  [/…/gu, "..."],
  // French quotation marks
  [/\u00a0«\u00a0/gu, '"'],
  [/«\u00a0/gu, '"'],
  [/«/gu, '"'],
  [/\u00a0»\u00a0/gu, '"'],
  [/\u00a0»/gu, '"'],
  [/»/gu, '"'],
  // no-break spaces
  [/\u00a0%/gu, "%"],
  [/nº\u00a0/gu, "nº "],
  [/\u00a0:/gu, ":"],
  [/\u00a0ºC/gu, " ºC"],
  [/\u00a0cm/gu, " cm"],
  [/\u00a0\?/gu, "?"],
  [/\u00a0!/gu, "!"],
  [/\u00a0;/gu, ";"],
  [/,\u00a0/gu, ", "],
  [/ +/gu, " "],
];
const QUOTE_AND_COMMA = {
  en: [[/"([,.]+)/gu, '$1"']],
  other: [
    [/,"/gu, '",'],
    [new RegExp(`(\\.+)"([${SPACE}]*[^<])`, "gu"), '"$1$2'],
  ],
};
const NUMBERS = /(\p{Nd})\u00a0(\p{Nd})/gu;

function normalise(text, language) {
  const quotes = { en: "en", de: "other", es: "other", fr: "other" }[language];
  const comma = ["de", "es", "cz", "cs", "fr"].includes(language);
  const rules = [...RULES, ...(QUOTE_AND_COMMA[quotes] ?? []), [NUMBERS, comma ? "$1,$2" : "$1.$2"]];
  return strip(rules.reduce((said, [pattern, replacement]) => said.replace(pattern, replacement), text));
}

const INVISIBLE = new RegExp(
  String.raw`[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f` +
    String.raw`\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb` +
    String.raw`\ud800-\udfff\u{e0000}-\u{e0fff}]`,
  "gu",
);
const JOINERS = /^[\u200c\u200d]+/u;
const JOINERS_AT_END = /[\u200c\u200d]+$/u;

/** A tokeniser: text -> words. `rules` are those of `nmt.text.tokenise.Tokeniser.rules`. */
export function tokeniser(rules) {
  const { language } = rules;
  const [alnum, alpha, number] = [rules.alnum, rules.alpha, rules.number].map(classOf);
  const inClass = (inside) => new RegExp(`[${inside}]`, "u");
  const [isAlpha, isLower, isKiller] = [
    inClass(alpha),
    inClass(classOf(rules.lower)),
    inClass(classOf(rules.vowel_killers)),
  ];
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
  // Sequences that look like one character, and private-use characters, which stand for them temporarily.
  const cluster = new RegExp(
    `[\\u{1f1e6}-\\u{1f1ff}]{2}|${emoji}(?:\\u200d${emoji})+|${emoji.replace("]?)", "])")}|[0-9#*]\\u20e3` +
      `|[^\\p{L}\\p{N}_${SPACE}${marks}\\u200c\\u200d][${marks}]+|[\\u{f0000}-\\u{10ffff}]`,
    "gu",
  );
  const unspaced = classOf(rules.unspaced);
  const characterEnds =
    unspaced &&
    new RegExp(
      `(?<=[${unspaced}])(?![${marks}])(?=[^${SPACE}])|(?<=[^${SPACE}])(?=[${unspaced}])(?![${marks}])`,
      "gu",
    );
  const replaced = (text, list) =>
    list.reduce((said, [pattern, replacement]) => said.replace(pattern, replacement), text);

  /** Makes full stops separate words, except after abbreviations and initials, and before a small letter. */
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

  /** Removes zero-width joiners at both ends of a word, except one after a vowel killer (virama). */
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
    text = normalise(text, language);
    text = strip(text.replace(SPACES, " ").replace(/[\x00-\x1f]/gu, ""));
    text = text.replace(apart, " $1 ");
    const end = text.length;
    text = text.replace(
      /\.{2,}/gu,
      (dots, at) => ` ${"DOT".repeat(dots.length)}MULTI${at + dots.length < end ? " " : ""}`,
    );
    text = replaced(text, commas);
    text = replaced(text, apostrophes);
    text = strip(fullStops(text).replace(SPACES, " "));
    text = text.replace(/\.' ?$/u, " . ' ");
    text = text.replace(/(?:DOT)+MULTI/gu, (marker) => ".".repeat((marker.length - 5) / 3));
    const restored = (token) =>
      token.length === 2 && token.codePointAt(0) >= 0xf0000
        ? clusters[token.codePointAt(0) - 0xf0000]
        : token;
    return splitWords(text)
      .map(restored)
      .map(withoutOuterJoiners)
      .filter((word) => word !== "");
  };
}

/** Code points of Chinese, Japanese and Korean characters, as ranges [first, last]. Words of these
 * characters are joined without spaces, except in Korean. */
const CJK = [
  [4352, 4607],
  [11904, 42191],
  [43072, 43135],
  [44032, 55215],
  [63744, 64255],
  [65072, 65103],
  [65381, 65500],
  [94208, 101119],
  [110592, 110895],
  [110960, 111359],
  [131072, 196607],
];
const isCjk = (character) =>
  CJK.some(([first, last]) => first <= character.codePointAt(0) && character.codePointAt(0) <= last);

/** Moses' escapes of characters, in the order in which they are undone. */
const ESCAPES = [
  ["&bar;", "|"],
  ["&#124;", "|"],
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&bra;", "["],
  ["&ket;", "]"],
  ["&quot;", '"'],
  ["&apos;", "'"],
  ["&#91;", "["],
  ["&#93;", "]"],
  ["&amp;", "&"],
];

/** A detokeniser: words -> text. `rules` are those of `nmt.text.tokenise.Tokeniser.rules`. */
export function detokeniser(rules) {
  const { language } = rules;
  const alpha = classOf(rules.plain_alpha);
  const currency = new RegExp(`^[${classOf(rules.currency)}([{¿¡]+$`, "u");
  const contraction = new RegExp(`^'[${alpha}]`, "u");
  const elision = new RegExp(`[${alpha}]'$`, "u");
  const letterFirst = new RegExp(`^[${alpha}]`, "u");
  const inside = classOf(rules.unspaced);
  const unspaced = inside && new RegExp(`(?<=[${inside}]) (?=[${inside}])`, "gu");
  const punctuation = /^[,.?!:;\\%}\])]+$/u;
  const quote = /^['"„“`]+$/u;

  return (words) => {
    const joined = ` ${words.join(" ")} `.replace(/ @-@ /gu, "-");
    const tokens = splitWords(
      ESCAPES.reduce((said, [escape, sign]) => said.replaceAll(escape, sign), joined),
    );
    const counts = new Map();
    let space = " ";
    let text = "";
    const left = (token) => {
      text += token;
      space = " ";
    };
    const right = (token) => {
      text += space + token;
      space = "";
    };
    const between = (token) => {
      text += space + token;
      space = " ";
    };
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i];
      const before = i > 0 ? [...tokens[i - 1]].at(-1) : "";
      if (isCjk(token) && language !== "ko") (i > 0 && isCjk(before) ? left : between)(token);
      else if (currency.test(token)) right(token);
      else if (punctuation.test(token))
        left(language === "fr" && /^[?!:;\\%]$/u.test(token) ? ` ${token}` : token);
      else if (language === "en" && i > 0 && contraction.test(token)) left(token);
      else if (
        language === "cs" &&
        i > 1 &&
        /^[0-9]+$/u.test(tokens.at(-2)) &&
        /^[.,]$/u.test(tokens.at(-1)) &&
        /^[0-9]+$/u.test(token)
      )
        left(token);
      else if (
        ["fr", "it", "ga"].includes(language) &&
        i <= tokens.length - 2 &&
        elision.test(token) &&
        letterFirst.test(tokens[i + 1])
      )
        right(token);
      else if (quote.test(token)) {
        const kind = /^[„“”]+$/u.test(token) ? '"' : token;
        if (language === "cs" && token === "„") counts.set(kind, 0);
        if (language === "cs" && token === "“") counts.set(kind, 1);
        const count = counts.get(kind) ?? 0;
        if (count % 2 === 0 && language === "en" && token === "'" && i > 0 && before === "s") left(token);
        else {
          (count % 2 === 0 ? right : left)(token);
          counts.set(kind, count + 1);
        }
      } else between(token);
    }
    text = strip(text.replace(/ {2,}/gu, " "));
    return unspaced ? text.replace(unspaced, "") : text;
  };
}
