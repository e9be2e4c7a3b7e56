// Moses' normalisation of punctuation, as sacremoses has it (MosesPunctNormalizer, its rules in its order).

import { SPACE, strip } from "./characters.mjs";

const RULES = [
  // white space
  [/\r/gu, ""], [/\(/gu, " ("], [/\)/gu, ") "], [/ +/gu, " "], [/\) ([.!:?;,])/gu, ")$1"], [/\( /gu, "("],
  [/ \)/gu, ")"], [/(\p{Nd}) %/gu, "$1%"], [/ :/gu, ":"], [/ ;/gu, ";"],
  // quotation marks of the Penn Treebank
  [/`/gu, "'"], [/''/gu, ' " '],
  // quotation marks, dashes
  [/„/gu, '"'], [/“/gu, '"'], [/”/gu, '"'], [/–/gu, "-"], [/—/gu, " - "], [/ +/gu, " "], [/´/gu, "'"],
  [/([a-zA-Z])‘([a-zA-Z])/gu, "$1'$2"], [/([a-zA-Z])’([a-zA-Z])/gu, "$1'$2"], [/‘/gu, "'"], [/‚/gu, "'"], [/’/gu, "'"],
  [/''/gu, '"'], [/´´/gu, '"'], [/…/gu, "..."],
  // French quotation marks
  [/\u00a0«\u00a0/gu, '"'], [/«\u00a0/gu, '"'], [/«/gu, '"'], [/\u00a0»\u00a0/gu, '"'], [/\u00a0»/gu, '"'], [/»/gu, '"'],
  // no-break spaces
  [/\u00a0%/gu, "%"], [/nº\u00a0/gu, "nº "], [/\u00a0:/gu, ":"], [/\u00a0ºC/gu, " ºC"], [/\u00a0cm/gu, " cm"],
  [/\u00a0\?/gu, "?"], [/\u00a0!/gu, "!"], [/\u00a0;/gu, ";"], [/,\u00a0/gu, ", "], [/ +/gu, " "],
];
const QUOTE_AND_COMMA = {
  en: [[/"([,.]+)/gu, '$1"']],
  other: [[/,"/gu, '",'], [new RegExp(`(\\.+)"([${SPACE}]*[^<])`, "gu"), '"$1$2']],
};
const NUMBERS = /(\p{Nd})\u00a0(\p{Nd})/gu;

/** Text of a language with its punctuation normalised. */
export function normalise(text, language) {
  const quotes = { en: "en", de: "other", es: "other", fr: "other" }[language];
  const comma = ["de", "es", "cz", "cs", "fr"].includes(language);
  const rules = [...RULES, ...(QUOTE_AND_COMMA[quotes] ?? []), [NUMBERS, comma ? "$1,$2" : "$1.$2"]];
  return strip(rules.reduce((said, [pattern, replacement]) => said.replace(pattern, replacement), text));
}
