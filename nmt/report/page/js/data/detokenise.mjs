// Words to text as Moses does it (sacremoses' MosesDetokenizer).

import { classOf, splitWords, strip } from "./characters.mjs";

/** Code points of Chinese, Japanese and Korean characters, which stand without spaces: [first, last]. */
const CJK = [
  [4352, 4607], [11904, 42191], [43072, 43135], [44032, 55215], [63744, 64255], [65072, 65103], [65381, 65500],
  [94208, 101119], [110592, 110895], [110960, 111359], [131072, 196607],
];
const isCjk = (character) => CJK.some(([first, last]) => first <= character.codePointAt(0) && character.codePointAt(0) <= last);

/** What Moses' own tokeniser writes, in the order in which it is undone. */
const ESCAPES = [
  ["&bar;", "|"], ["&#124;", "|"], ["&lt;", "<"], ["&gt;", ">"], ["&bra;", "["], ["&ket;", "]"], ["&quot;", '"'],
  ["&apos;", "'"], ["&#91;", "["], ["&#93;", "]"], ["&amp;", "&"],
];

/** A detokeniser: words -> text. `rules` are those of `nmt.data.tokenise.Tokeniser.rules`. */
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
    const tokens = splitWords(ESCAPES.reduce((said, [escape, sign]) => said.replaceAll(escape, sign), joined));
    const counts = new Map();
    let space = " ";
    let text = "";
    const left = (token) => { text += token; space = " "; };
    const right = (token) => { text += space + token; space = ""; };
    const between = (token) => { text += space + token; space = " "; };
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i];
      const before = i > 0 ? [...tokens[i - 1]].at(-1) : "";
      if (isCjk(token) && language !== "ko") (i > 0 && isCjk(before) ? left : between)(token);
      else if (currency.test(token)) right(token);
      else if (punctuation.test(token)) left(language === "fr" && /^[?!:;\\%]$/u.test(token) ? ` ${token}` : token);
      else if (language === "en" && i > 0 && contraction.test(token)) left(token);
      else if (language === "cs" && i > 1 && /^[0-9]+$/u.test(tokens.at(-2)) && /^[.,]$/u.test(tokens.at(-1)) && /^[0-9]+$/u.test(token)) left(token);
      else if (["fr", "it", "ga"].includes(language) && i <= tokens.length - 2 && elision.test(token) && letterFirst.test(tokens[i + 1])) right(token);
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
