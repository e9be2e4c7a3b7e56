"""Training Thot's phrase-based system, and translating with it.

sil-machine's trainer does what Moses' train-model.perl does: word alignment in both directions, a
symmetrised phrase table, a trigram language model of the target side. Its own tuning is left out:
it takes its sentences from the training pairs and loads the model anew for every set of weights;
`nmt.phrase_based.tuning` does it on the development set with one loaded model.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nmt.config import PhraseBasedConfig
from nmt.utils.optional import need
from nmt.utils.progress import Stage

EXTRA = "phrase-based"
PHRASE_TABLE = "model.ttable"
LONGEST = 20  # words of a source phrase; sil-machine extracts none of more than 10
BATCH = 32  # sentences translated between two steps of a progress bar
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
"""Thot's features, in its order; `words` and `target_phrase_length` may have either sign."""
START = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)


def check_installed() -> None:
    """Raises InputError where Thot or its trainer is missing."""
    need("thot.translation", EXTRA, "nmt.baseline")
    need("machine.translation.thot", EXTRA, "nmt.baseline")


def train_system(
    pairs: Iterable[tuple[str, str]],
    folder: Path,
    config: PhraseBasedConfig,
    *,
    progress: bool = False,
) -> None:
    """Trains a system and leaves its tables in `folder`.

    Args:
        pairs: source and target sentences, tokens separated by spaces.
        folder: for the translation model (`tm`) and the language model (`lm`).
        config: which aligner aligns the words.
        progress: show a progress bar.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage("training the phrase-based system", 100, "part", shown=progress)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as scratch, stage:
        _write_corpus(pairs, Path(scratch))
        # Thot holds the interpreter for minutes, in which nothing could be said or stopped: in a
        # process of its own
        processes = multiprocessing.get_context("spawn")
        receiver, sender = processes.Pipe(duplex=False)
        worker = processes.Process(
            target=_train, args=(Path(scratch), folder, config, sender), daemon=True
        )
        worker.start()
        sender.close()
        try:
            for share, _ in _received(receiver):
                stage.advance(round(100 * share) - stage.done)
        finally:
            worker.kill()
            worker.join()


class PhraseBased:
    """A trained system, loaded.

    Args:
        folder: that `train_system` filled.
        config: settings of the search.
        sources: the sentences that it is to translate: only phrases that stand in them are loaded,
            which leaves their translations as they are and takes a tenth of the time or less.
            None: any.
    """

    def __init__(
        self,
        folder: Path,
        config: PhraseBasedConfig,
        sources: Iterable[Sequence[str]] | None = None,
    ) -> None:
        from machine.translation.thot import ThotWordAlignmentModelType
        from machine.translation.thot.thot_utils import load_smt_decoder, load_smt_model

        aligner = ThotWordAlignmentModelType[config.alignment.upper()]
        with tempfile.TemporaryDirectory(prefix="loaded-", dir=folder) as needed:
            if sources is not None:
                _keep_needed(folder, Path(needed), sources)
            loaded = folder if sources is None else Path(needed)
            parameters = _parameters(loaded, config)
            self._model = load_smt_model(aligner, parameters)
            self._decoder = load_smt_decoder(self._model, parameters)
        self.weights = START

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the features, in the order of `WEIGHTS`."""
        return tuple(self._model.weights)

    @weights.setter
    def weights(self, values: Sequence[float]) -> None:
        self._model.weights = list(values)

    def translate(self, sources: Sequence[Sequence[str]]) -> list[list[str]]:
        """The best translation of each sentence; an unknown word is copied."""
        from machine.translation.thot.thot_utils import to_sentence, to_target_tokens

        found = self._decoder.translate_batch([to_sentence(words) for words in sources])
        return [list(to_target_tokens(data.target)) for data in found]

    def translate_all(
        self, sources: Sequence[Sequence[str]], progress: str | None = None
    ) -> list[list[str]]:
        """`translate` in batches, as a stage with the title `progress`; None: nothing is shown."""
        found: list[list[str]] = []
        shown = progress is not None
        with Stage(progress or "", len(sources), "sentence", shown=shown) as stage:
            for start in range(0, len(sources), BATCH):
                found += self.translate(sources[start : start + BATCH])
                stage.advance(len(found) - start)
        return found

    def close(self) -> None:
        """Frees the tables, which lie outside Python's memory."""
        self._decoder.clear()
        self._model.clear()


def _parameters(folder: Path, config: PhraseBasedConfig) -> Any:
    from machine.translation.thot import ThotSmtParameters

    return ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "tm" / "model"),
        language_model_filename_prefix=str(folder / "lm" / "target"),
        model_weights=list(START),
        model_w=config.options,
        decoder_s=config.stack,
        model_non_monotonicity=config.reordering,
    )


def _keep_needed(folder: Path, needed: Path, sources: Iterable[Sequence[str]]) -> None:
    """Makes tables of which the phrase table has only phrases of some sentences (Moses' filtering).

    A line of it is `target phrase ||| source phrase ||| count of the target phrase, of both`, so that
    what is left out of a phrase's own lines changes neither of its probabilities.
    """
    from machine.translation.thot.thot_utils import escape_tokens

    phrases = set()
    for sentence in sources:
        words = list(escape_tokens(sentence))
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + LONGEST) + 1):
                phrases.add(" ".join(words[start:end]))
    (needed / "lm").symlink_to((folder / "lm").absolute())
    (needed / "tm").mkdir()
    for path in (folder / "tm").iterdir():
        if path.name != PHRASE_TABLE:
            (needed / "tm" / path.name).symlink_to(path.absolute())
    with (
        (folder / "tm" / PHRASE_TABLE).open(encoding="utf-8", newline="\n") as table,
        (needed / "tm" / PHRASE_TABLE).open("w", encoding="utf-8", newline="\n") as kept,
    ):
        for line in table:
            if line.split(" ||| ", 2)[1] in phrases:
                kept.write(line)


SIDES = ("source", "target")


def _write_corpus(pairs: Iterable[tuple[str, str]], folder: Path) -> None:
    """The pairs as files, which the trainer reads several times."""
    with ExitStack() as stack:
        files = [stack.enter_context((folder / side).open("w", encoding="utf-8")) for side in SIDES]
        for pair in pairs:
            for file, sentence in zip(files, pair, strict=True):
                file.write(f"{sentence}\n")


def _train(scratch: Path, folder: Path, config: PhraseBasedConfig, sender: Connection) -> None:
    """Trains on the files in `scratch`; sends (share done, phase), and last what went wrong, or None."""
    from machine.corpora import TextFileTextCorpus
    from machine.translation.thot import ThotSmtModelTrainer

    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the process that waits is told, and ends this one
    tempfile.tempdir = str(scratch)  # where the trainer's tables of gigabytes go with the rest
    try:
        source, target = (TextFileTextCorpus(str(scratch / side)) for side in SIDES)
        corpus = source.align_rows(target)
        with ThotSmtModelTrainer(config.alignment, corpus, _parameters(folder, config)) as trainer:
            trainer._model_weight_tuner = _keep_weights()
            trainer.train(
                lambda status: sender.send((status.percent_completed or 0, status.message or ""))
            )
            trainer.save()
    except Exception as error:
        sender.send(error)
    else:
        sender.send(None)


def _received(receiver: Connection) -> Iterator[tuple[float, str]]:
    """What `_train` sends, until it has ended; raises what it has raised."""
    while True:
        try:
            message = receiver.recv()
        except EOFError as ended:
            raise RuntimeError(
                "the process that trains the phrase-based system was killed"
            ) from ended
        if message is None:
            return
        if isinstance(message, Exception):
            raise message
        yield message


def _keep_weights() -> Any:
    """A tuner in place of the trainer's own, which leaves everything as it is."""
    return types.SimpleNamespace(tune=lambda parameters, *_: parameters)
