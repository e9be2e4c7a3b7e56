"""The page's tokeniser, detokeniser and subwords under Node, compared with the Python code."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path

import pytest

from nmt.data.vocabulary import BpeVocabulary
from nmt.text.tokenise import tokeniser
from tests.helpers.models import drawn_model, write_live
from tests.report.page.node import NODE, in_node

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

WORDS = """
cat Dr. No. e.g. i.e. U.S. Mr l' aujourd'hui don't dogs' 3,000.50 50% $5 €7 £ ¿qué? ¡ «oui» “so”
„gut“ ‘a’ it’s l’eau ... … .... . .. ?! - -- — – a-b (x) [y] {z} <b> </b> &amp; & | @-@ #tag a/b
x.y www.a.fr/é?q=1 me@b.org '' `` ` ' DOTMULTI naïve œuvre ÉTÉ Ærø ﬁn ß Σίσυφος мир שלום سلام
日本語 中文 한국어 ไทย 😀 🇫🇷 👍🏽 ½ x² Ⅳ １２ ٣٫٥ 𝒳 𐍈 𞤀 ｶﾅ 。 ， <unk> </s> ._. O'Neil's
"""
PIECES = [
    *WORDS.split(),
    "1 000",
    "5 %",
    "nº 3",
    "\\",
    '"',
    '",',
    ',"',
    "\u0939\u093f\u0928\u094d\u0926\u0940",
    "\U0001f469\u200d\U0001f52c",
    "e\u0301",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\xad",
    "m\u0323\u0301",
    "\u0438\u0301",
    "1\ufe0f\u20e3",
    "\u2764\ufe0f",
    "\u2205\u0338",
    "\U000f0001",
    "\u202eabc",
    "\xa0",
    "\u2009",
    "\u3000",
    "\u2028",
    "\x1c",
    "\x85",
    "\t",
    "  ",
    "\U000e0041",
]


def awkward_lines(count: int) -> list[str]:
    """Returns some fixed lines, and random lines of words from `PIECES`."""
    draw = random.Random(7)
    lines = ["", " ", ".", "'", "a.", "a.'", "a. '", "a...b", "1,2,3,", ",1", "..a.. ."]
    while len(lines) < count:
        words = draw.choices(PIECES, k=draw.randint(1, 9))
        lines.append("".join(word + draw.choice(["", " ", " ", " "]) for word in words))
    return lines


TOKENISE = """
import { detokeniser, tokeniser } from "$JS/model/moses.mjs";
const found = {};
for (const { rules, lines, words } of given.cases) {
  found[rules.language] = { words: lines.map(tokeniser(rules)), lines: words.map(detokeniser(rules)) };
}
console.log(JSON.stringify(found));
"""


def held_to_python(languages: list[str], lines: list[str]) -> None:
    wanted = {}
    cases = []
    for language in languages:
        moses = tokeniser(language)
        words = [moses.tokenise(line) for line in lines]
        wanted[language] = {"words": words, "lines": [moses.detokenise(each) for each in words]}
        cases.append({"rules": moses.rules(), "lines": lines, "words": words})
    found = in_node(TOKENISE, cases=cases)
    for language in languages:
        for kind in ("words", "lines"):
            pairs = zip(found[language][kind], wanted[language][kind], lines, strict=True)
            wrong = [(language, line, a, b) for a, b, line in pairs if a != b]
            assert not wrong, (len(wrong), ascii(wrong[:3]))


def test_page_tokeniser_equals_python() -> None:
    held_to_python(["en", "fr", "zh"], awkward_lines(80))


def test_page_subwords_equal_python(tmp_path: Path) -> None:
    trained = drawn_model(bpe=True)
    vocabulary = trained.source
    assert isinstance(vocabulary, BpeVocabulary)
    moses = tokeniser("en")
    lines = [moses.tokenise(line) for line in awkward_lines(200)]
    draw = random.Random(3)
    spelt = [draw.choices(range(len(vocabulary)), k=draw.randint(1, 12)) for _ in range(200)]
    header, _, _ = zlib.decompress(write_live(trained, tmp_path).read_bytes()).partition(b"\n")
    found = in_node(
        """
        import { vocabularyOf } from "$JS/model/vocabulary.mjs";
        const vocabulary = vocabularyOf(given.state);
        const spell = (ids) => {
          const words = vocabulary.spelt(ids);
          const symbols = ids.map((id) => vocabulary.symbol(id));
          return { words: words.map(([word]) => word), sizes: words.map(([, n]) => n), symbols };
        };
        const ids = given.lines.map((words) => vocabulary.encode(words));
        console.log(JSON.stringify({ ids, spelt: given.spelt.map(spell) }));
        """,
        state=json.loads(header)["source_vocabulary"],
        lines=lines,
        spelt=spelt,
    )
    assert found["ids"] == [vocabulary.encode(words) for words in lines]
    for ids, one in zip(spelt, found["spelt"], strict=True):
        index = vocabulary.word_index(ids)
        assert one["sizes"] == [index.count(number) for number in dict.fromkeys(index)]
        assert one["symbols"] == vocabulary.symbols(ids)
        if 0 not in ids:
            assert one["words"] == vocabulary.decode(ids)
