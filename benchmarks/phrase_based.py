"""Trains a phrase-based system (Koehn et al., 2003), the counterpart of Moses in the paper's Table 1.

    uv run --group phrase-based python -m benchmarks.phrase_based regime=laptop --tune 200 --output phrases
    uv run python -m nmt.compare 'runs=[multirun/*/*]' +systems.phrases.by_length=phrases/by_length.txt

The words without dashes are overrides of `nmt.train`. The system gets the training, development and test text
of a run with these overrides. The script writes one file per test set, `SET.txt`, with one translation per
line, and then `system.json`, which describes the system. `nmt.compare` reads `SET.txt` like the output of any
other system. `benchmarks.records` reads the whole folder.

The library is Thot (dependency group `phrase-based`). Phrases are extracted from symmetrised HMM alignments,
as in Moses' train-model.perl. The language model is a trigram model of the target side. There is no lexicalised
reordering model. Unknown words are copied. The weights are tuned for BLEU on development sentences. A stopped
script starts again from the beginning.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import shutil
import signal
import tempfile
import time
import types
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import nmt
from benchmarks.records import SYSTEM
from nmt.cli.errors import exiting
from nmt.config.schema import TextConfig
from nmt.data.pairs import Pairs
from nmt.data.preparation import prepare
from nmt.evaluation import results
from nmt.evaluation.scores.bleu import all_statistics, bleu
from nmt.text.tokenise import tokeniser
from nmt.utils.devices import processor
from nmt.utils.environment import git_commit
from nmt.utils.errors import InputError
from nmt.utils.files import write_json, write_text
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

MODULE = "benchmarks.phrase_based"
TITLE, MODEL = "phrase-based (Thot)", "PhraseBased"
PHRASE_TABLE = "model.ttable"
OPTIONS = 10  # maximum number of translations per source phrase in a search
STACK = 10  # maximum number of hypotheses in each stack of a search
MAX_PHRASE_WORDS = 20  # upper bound for source words of a phrase; sil-machine uses 10
BATCH = 32  # number of sentences per update of the progress bar
SIDES = ("source", "target")
ALIGNER = "hmm"  # word alignment model for phrase extraction

Weights = tuple[float, ...]
WEIGHTS = (
    "words",
    "language_model",
    "target_phrase_length",
    "source_phrase_length",
    "target_given_source",
    "source_given_target",
    "jumps",
    "sentence_length",
)
"""Thot's features, in Thot's order. The weights of `words` and `target_phrase_length` may be negative."""
START = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)  # weights before tuning
TUNED = range(7)  # indices in WEIGHTS; as in Thot's tuning, the last weight stays 0
SIGNED = (0, 2)  # indices of length penalties; their weights may be negative
STEPS = (0.5, 0.25, 0.125)  # step size of each pass over the weights, relative to the weight
MIN_SIZE = 0.2  # if a weight is smaller, its steps are relative to this value


def train_system(pairs: Iterable[tuple[str, str]], folder: Path, reordering: int = 0) -> None:
    """Trains a system and writes its tables into `folder`.

    The trainer's own tuning is not used, because it holds out training pairs and reloads the model for every
    set of weights; see `tune`.

    Args:
        pairs: source and target sentences, tokens separated by spaces.
        folder: output folder of the translation model (`tm`) and the language model (`lm`).
        reordering: number of source words that reordering may skip; 0: none.
    """
    from machine.corpora import TextFileTextCorpus
    from machine.translation.thot import ThotSmtModelTrainer

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:
        files = [Path(scratch, side) for side in SIDES]
        with (
            files[0].open("w", encoding="utf-8") as left,
            files[1].open("w", encoding="utf-8") as right,
        ):
            for source, target in pairs:
                left.write(f"{source}\n")
                right.write(f"{target}\n")
        sources, targets = (TextFileTextCorpus(str(file)) for file in files)
        untuned: Any = types.SimpleNamespace(tune=lambda parameters, *_: parameters)
        before = tempfile.tempdir
        tempfile.tempdir = scratch  # the trainer writes gigabytes of temporary files
        try:
            corpus = sources.align_rows(targets)
            parameters = _parameters(folder, reordering)
            with ThotSmtModelTrainer(ALIGNER, corpus, parameters) as trainer:
                trainer._model_weight_tuner = untuned
                trainer.train()
                trainer.save()
        finally:
            tempfile.tempdir = before


class PhraseBased:
    """A loaded phrase-based system.

    Args:
        folder: folder that `train_system` wrote.
        reordering: as in `train_system`.
        sources: the sentences to translate. Only their phrases are loaded. This takes at most a tenth of
            the time and gives the same translations. If None, all phrases are loaded.
    """

    def __init__(
        self,
        folder: Path,
        reordering: int = 0,
        sources: Iterable[Sequence[str]] | None = None,
    ) -> None:
        from machine.translation.thot import ThotWordAlignmentModelType
        from machine.translation.thot.thot_utils import load_smt_decoder, load_smt_model

        aligner = ThotWordAlignmentModelType[ALIGNER.upper()]
        with tempfile.TemporaryDirectory(prefix="loaded-", dir=folder) as filtered:
            if sources is not None:
                _filter_phrases(folder, Path(filtered), sources)
            parameters = _parameters(folder if sources is None else Path(filtered), reordering)
            self._model = load_smt_model(aligner, parameters)
            self._decoder = load_smt_decoder(self._model, parameters)
        self.weights = START

    @property
    def weights(self) -> Weights:
        """Weights of the features, in the order of `WEIGHTS`."""
        return tuple(self._model.weights)

    @weights.setter
    def weights(self, values: Sequence[float]) -> None:
        self._model.weights = list(values)

    def translate(
        self, sources: Sequence[Sequence[str]], progress: str | None = None
    ) -> list[list[str]]:
        """Returns the best translation of each sentence; unknown words are copied.

        Args:
            sources: words of each sentence.
            progress: title of a progress bar. None: no bar.
        """
        from machine.translation.thot.thot_utils import to_sentence, to_target_tokens

        translations: list[list[str]] = []
        shown = progress is not None
        with Stage(progress or "", len(sources), "sentence", shown=shown) as stage:
            for start in range(0, len(sources), BATCH):
                batch = [to_sentence(words) for words in sources[start : start + BATCH]]
                found = self._decoder.translate_batch(batch)
                translations += [list(to_target_tokens(data.target)) for data in found]
                stage.advance(len(batch))
        return translations

    def close(self) -> None:
        """Frees the tables, because Python does not manage their memory."""
        self._decoder.clear()
        self._model.clear()


def _parameters(folder: Path, reordering: int) -> Any:
    from machine.translation.thot import ThotSmtParameters

    return ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "tm" / "model"),
        language_model_filename_prefix=str(folder / "lm" / "target"),
        model_weights=list(START),
        model_w=OPTIONS,
        decoder_s=STACK,
        model_non_monotonicity=reordering,
    )


def _filter_phrases(folder: Path, filtered: Path, sources: Iterable[Sequence[str]]) -> None:
    """Writes a phrase table with only the phrases of `sources`, like the filtering of Moses.

    For all other tables, writes symbolic links. A line of the phrase table contains a target phrase, a source
    phrase, and the counts of the target phrase and of the pair. So removing a source phrase does not change
    the probabilities of other phrases.
    """
    from machine.translation.thot.thot_utils import escape_tokens

    phrases = set()
    for sentence in sources:
        words = list(escape_tokens(sentence))
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + MAX_PHRASE_WORDS) + 1):
                phrases.add(" ".join(words[start:end]))
    (filtered / "lm").symlink_to((folder / "lm").absolute())
    (filtered / "tm").mkdir()
    for path in (folder / "tm").iterdir():
        if path.name != PHRASE_TABLE:
            (filtered / "tm" / path.name).symlink_to(path.absolute())
    with (
        (folder / "tm" / PHRASE_TABLE).open(encoding="utf-8", newline="\n") as table,
        (filtered / "tm" / PHRASE_TABLE).open("w", encoding="utf-8", newline="\n") as kept,
    ):
        kept.writelines(line for line in table if line.split(" ||| ", 2)[1] in phrases)


def tune(
    system: PhraseBased,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
) -> tuple[float, float]:
    """Tunes by coordinate search, which changes one weight at a time if that improves BLEU.

    While BLEU improves, the weight changes further in the same direction. At the end, the system has
    the best weights.

    Args:
        system: a loaded system; the search starts from its weights.
        sources, references: development sentences.

    Returns:
        BLEU of the development sentences before and after tuning.
    """

    def score(weights: Weights) -> float:
        system.weights = weights
        stage.advance()
        statistics = all_statistics(system.translate(sources), [[each] for each in references])
        return float(bleu(statistics.sum(axis=0)))

    with Stage("tuning", unit="trial") as stage:
        best = tuple(system.weights)
        best_score = first_score = score(best)
        for step in STEPS:
            for feature in TUNED:
                for direction in (1.0, -1.0):
                    start = best_score
                    while (candidate := moved(best, feature, direction * step)) != best:
                        if (new_score := score(candidate)) <= best_score:
                            break
                        best = candidate
                        best_score = new_score
                    if best_score > start:
                        break
    system.weights = best
    return first_score, best_score


def moved(weights: Weights, feature: int, share: float) -> Weights:
    """Changes one weight by a share of its size, unless a weight outside `SIGNED` would become 0 or negative."""
    value = weights[feature] + share * max(abs(weights[feature]), MIN_SIZE)
    if feature not in SIGNED and value <= 0:
        return weights
    return (*weights[:feature], round(value, 6), *weights[feature + 1 :])


def run(overrides: Sequence[str], folder: Path, sentences: int = 300, reordering: int = 0) -> None:
    """Trains and tunes a system, and writes the translations of each test set, then `SYSTEM`.

    Args:
        overrides: overrides of `nmt.train`, which select the text.
        folder: output folder.
        sentences: number of development sentences for tuning; 0: no tuning.
        reordering: as in `train_system`.

    Raises:
        InputError: if the folder already contains a system, or an override or a text is invalid.
    """
    if (folder / SYSTEM).exists():
        raise InputError(f"--output {folder}: already contains a system; choose another folder")
    config = nmt.configure(*overrides)
    text = prepare(config.data, config.tokenizer)
    detokenise = tokeniser(config.data.languages[1]).detokenise
    tables = folder / "tables"
    shutil.rmtree(tables, ignore_errors=True)  # of a stopped script
    start = time.monotonic()
    pairs = ((" ".join(pair["source"]), " ".join(pair["target"])) for pair in text.train)
    with timed("training the phrase-based system"):
        train_system(pairs, tables, reordering)
    count = min(sentences, len(text.valid))
    dev = [text.valid[int(n)] for n in np.linspace(0, len(text.valid) - 1, count)]
    tests = [pair for split in text.test.values() for pair in split]
    with timed("loading the phrase-based system"):
        system = PhraseBased(tables, reordering, [pair["source"] for pair in [*dev, *tests]])
    with closing(system):
        valid = {}
        if dev:
            before, after = tune(system, *([pair[side] for pair in dev] for side in SIDES))
            log.info("tuned on %d development sentences: BLEU %.2f to %.2f", count, before, after)
            valid = {"bleu": after}
        hours = (time.monotonic() - start) / 3600
        for name, split in text.test.items():
            lines = translated_lines(system, split, config.data.test[name], detokenise)
            write_text(folder / f"{name}.txt", "".join(f"{line}\n" for line in lines))
        weights = dict(zip(WEIGHTS, system.weights, strict=True))
    shutil.rmtree(tables)
    options = [f"--tune={sentences}", f"--reordering={reordering}"]
    about = {
        "name": TITLE,
        "model": MODEL,
        "seed": config.seed,
        "max_length": config.data.max_length,
        "command": shlex.join(["python", "-m", MODULE, *overrides, *options]),
        "commit": git_commit(),
        "processor": processor(),
        "versions": results.versions(),
        "train": {"updates": 0, "hours": hours, "device": "CPU", "weights": weights},
        "valid": valid,
    }
    write_json(folder / SYSTEM, results.as_json(about))


def translated_lines(
    system: PhraseBased, split: Pairs, text: TextConfig, detokenise: Any
) -> list[str]:
    """Translates a test set; returns tokens separated by spaces if its text is tokenised, else plain text."""
    sources = [pair["source"] for pair in split]
    join = " ".join if text.tokenised or text.grammar else detokenise
    return [join(words) for words in system.translate(sources, f"translating {split.name}")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of nmt.train")
    parser.add_argument("--output", type=Path, default=Path("outputs/phrase_based"))
    parser.add_argument("--tune", type=int, default=300, help="development sentences; 0: none")
    parser.add_argument("--reordering", type=int, default=0, help="source words it may skip")
    args = parser.parse_intermixed_args()
    try:
        import machine.translation.thot  # noqa: F401
    except ImportError as error:
        parser.error(f"{error}; type uv run --group phrase-based python -m {MODULE}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    # Thot holds Python's global interpreter lock for minutes, so Python cannot handle Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with exiting():
        run(args.overrides, args.output, args.tune, args.reordering)


if __name__ == "__main__":
    main()
