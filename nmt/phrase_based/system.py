"""Trains Thot's phrase-based system, and translates with it.

The trainer of sil-machine, a package that uses Thot, works like Moses' train-model.perl. It computes word
alignments in both directions, a symmetrised phrase table, and a trigram language model of the target side. The
trainer's own tuning is not used, because it holds out training pairs and reloads the model for every set of
weights. `nmt.phrase_based.training` tunes the weights instead.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nmt.config.commands import PhraseBasedConfig
from nmt.utils.environment import need
from nmt.utils.progress import Stage

EXTRA = "phrase-based"
PHRASE_TABLE = "model.ttable"
OPTIONS = 10  # maximum number of translations per source phrase in a search
STACK = 10  # maximum number of hypotheses in each stack of a search
MAX_PHRASE_WORDS = 20  # upper bound for source words of a phrase; sil-machine uses 10
BATCH = 32  # number of sentences per update of the progress bar
SIDES = ("source", "target")
ALIGNER = "hmm"  # word alignment model for phrase extraction
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


def check_installed() -> None:
    """Raises InputError if Thot or its trainer is missing."""
    need("thot.translation", EXTRA, "nmt.baseline")
    need("machine.translation.thot", EXTRA, "nmt.baseline")


def train_system(pairs: Iterable[tuple[str, str]], folder: Path, config: PhraseBasedConfig) -> None:
    """Trains a system and writes its tables into `folder`.

    Thot holds Python's global interpreter lock for minutes. A process cannot handle signals during that
    time, so Thot runs in a separate process.

    Args:
        pairs: source and target sentences, tokens separated by spaces.
        folder: output folder of the translation model (`tm`) and the language model (`lm`).
        config: settings of the system.

    Raises:
        RuntimeError: if the training fails. The training process prints a traceback.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:
        sides = [Path(scratch, side) for side in SIDES]
        with (
            sides[0].open("w", encoding="utf-8") as left,
            sides[1].open("w", encoding="utf-8") as right,
        ):
            for source, target in pairs:
                left.write(f"{source}\n")
                right.write(f"{target}\n")
        worker = multiprocessing.get_context("spawn").Process(
            target=_train, args=(Path(scratch), folder, config), daemon=True
        )
        worker.start()
        try:
            worker.join()
        finally:
            worker.kill()
            worker.join()
    if worker.exitcode:
        raise RuntimeError(f"training the phrase-based system failed: exit code {worker.exitcode}")


def _train(scratch: Path, folder: Path, config: PhraseBasedConfig) -> None:
    """Trains the phrase-based system on the files in `scratch`, in the process that `train_system` starts."""
    from machine.corpora import TextFileTextCorpus
    from machine.translation.thot import ThotSmtModelTrainer

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl+C
    tempfile.tempdir = str(scratch)  # the trainer writes gigabytes of temporary files
    source, target = (TextFileTextCorpus(str(scratch / side)) for side in SIDES)
    corpus = source.align_rows(target)
    with ThotSmtModelTrainer(ALIGNER, corpus, _parameters(folder, config)) as trainer:
        trainer._model_weight_tuner = types.SimpleNamespace(tune=lambda parameters, *_: parameters)
        trainer.train()
        trainer.save()


class PhraseBased:
    """A loaded phrase-based system.

    Args:
        folder: folder that `train_system` wrote.
        config: settings of the search.
        sources: the sentences to translate. Only their phrases are loaded. This takes at most a tenth of
            the time and gives the same translations. If None, all phrases are loaded.
    """

    def __init__(
        self,
        folder: Path,
        config: PhraseBasedConfig,
        sources: Iterable[Sequence[str]] | None = None,
    ) -> None:
        from machine.translation.thot import ThotWordAlignmentModelType
        from machine.translation.thot.thot_utils import load_smt_decoder, load_smt_model

        aligner = ThotWordAlignmentModelType[ALIGNER.upper()]
        with tempfile.TemporaryDirectory(prefix="loaded-", dir=folder) as filtered:
            if sources is not None:
                _filter_phrases(folder, Path(filtered), sources)
            parameters = _parameters(folder if sources is None else Path(filtered), config)
            self._model = load_smt_model(aligner, parameters)
            self._decoder = load_smt_decoder(self._model, parameters)
        self.weights = START

    @property
    def weights(self) -> tuple[float, ...]:
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
                results = self._decoder.translate_batch(batch)
                translations += [list(to_target_tokens(data.target)) for data in results]
                stage.advance(len(batch))
        return translations

    def close(self) -> None:
        """Frees the tables, because Python does not manage their memory."""
        self._decoder.clear()
        self._model.clear()


def _parameters(folder: Path, config: PhraseBasedConfig) -> Any:
    from machine.translation.thot import ThotSmtParameters

    return ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "tm" / "model"),
        language_model_filename_prefix=str(folder / "lm" / "target"),
        model_weights=list(START),
        model_w=OPTIONS,
        decoder_s=STACK,
        model_non_monotonicity=config.reordering,
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
