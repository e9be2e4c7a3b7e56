"""The test protocol: a model over every test set, sentence by sentence, and what is said of it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from torch.utils.data import DataLoader

from nmt.config.schema import Config, StressConfig, TextConfig
from nmt.data.batch import Batch
from nmt.data.prepare import Prepared
from nmt.data.splits import Split
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabulary
from nmt.evaluation import records, summary
from nmt.evaluation.alignment import gold_links
from nmt.evaluation.statistical_aligners import statistical_alignment_scores
from nmt.evaluation.stress import Pair, stress_sets
from nmt.inference.dictionary_loop import Lexicon
from nmt.inference.force_decoding import Codec
from nmt.inference.test_loop import Example, Testing
from nmt.layers import Attention
from nmt.models import Translator
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


def examples(split: Split, text: TextConfig) -> list[Example]:
    """A prepared test set, sentence by sentence.

    Raises:
        InputError: for a gold alignment that does not fit, naming file and line.
    """
    found = []
    for number, pair in enumerate(split):
        gold = gold_links(pair, text, f"data.test.{split.name}")
        found.append(Example(number, pair["source"], pair["target"], pair["target_text"], gold))
    return found


def example_sets(split: Split, config: Config) -> dict[str, list[Example]]:
    """A prepared test set by its name, and those of joined sentences that `stress` makes of it.

    Raises:
        InputError: as `examples`, and where a made set has the name of another.
    """
    sentences = examples(split, config.data.test[split.name])
    made = stress_examples(split.name, sentences, config.stress)
    taken = made.keys() & config.data.test.keys()
    if taken:
        raise InputError(
            f"data.test.{min(taken)}: stress makes a test set of this name; take another"
        )
    return {split.name: sentences, **made}


def stress_examples(
    name: str, sentences: Sequence[Example], stress: StressConfig
) -> dict[str, list[Example]]:
    """Test sets of joined neighbouring sentences, one for each length of `stress.lengths`."""
    pairs = [Pair(tuple(e.source), tuple(e.target), e.gold, e.text, (e.id,)) for e in sentences]
    sets = stress_sets(name, pairs, stress.lengths, stress.pairs)
    missing = [length for length in stress.lengths if f"{name}-joined{length}" not in sets]
    if missing:
        log.warning("stress.lengths=%s: %s has too few sentences in a row to join", missing, name)
    return {
        joined: [Example(n, p.source, p.target, p.text, p.gold) for n, p in enumerate(inputs)]
        for joined, inputs in sets.items()
    }


def make_codec(config: Config, source: Vocabulary, target: Vocabulary) -> Codec:
    """The vocabularies of a run, with the detokeniser of its target language."""
    moses = tokeniser(config.data.languages[1], config.tokenizer.normalise)
    return Codec(source, target, moses.detokenise)


def test_sets(
    trainer: pl.Trainer,
    model: Translator,
    config: Config,
    codec: Codec,
    sets: Mapping[str, Sequence[Example]],
    folder: Path,
    dictionary: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Runs the test protocol over each set; returns `test` of results.json (on rank 0).

    Translations and alignments are written to the run folder. `dictionary` is for
    `search.replace_unk=dictionary`.
    """
    scores: dict[str, Any] = {}
    for name, sentences in sets.items():
        log.info("translating %s: %d sentences", name, len(sentences))
        edges = list(config.evaluation.edges)
        rows = [{"id": e.id, "source": e.source, "length": len(e.source)} for e in sentences]
        kept = set(records.choose_kept(rows, config.report.sentences, edges))
        if kept and config.report.sentence:  # the named one among them, tokenised or not
            named = "".join(config.report.sentence.split())
            kept |= {e.id for e in sentences if "".join(e.source) == named}
        testing = Testing(
            model,
            codec,
            sentences,
            config.search,
            config.evaluation,
            kept=kept,
            dictionary=dictionary,
            progress=f"translating {name}" if config.trainer.progress else None,
        )
        loader = testing.loader(trainer.global_rank, trainer.world_size)
        trainer.test(testing, loader, verbose=False)
        if not trainer.is_global_zero:
            continue
        records.write_translations(folder, name, testing.records)
        records.write_alignments(folder, name, testing.alignments)
        scores[name] = summary.summarise(
            testing.records, config.evaluation, dataclasses.asdict(config.search)
        )
        say(name, scores[name])
    return scores


def say(name: str, scores: Mapping[str, Any]) -> None:
    """The scores of a test set for a person: a line, and one a length bucket."""
    overall = scores["bleu"]["all"]
    line = f"{name}: BLEU {overall['score']:.2f}"
    if overall["low"] is not None:
        line += f" [{overall['low']:.2f}, {overall['high']:.2f}]"
    if "no_unk" in scores["bleu"]:
        free = scores["bleu"]["no_unk"]
        line += f", {free['score']:.2f} on {free['sentences']} pairs without unknown words"
    if scores["nll_per_sentence"] is not None:
        line += f", NLL/sentence {scores['nll_per_sentence']:.2f}"
    if "alignment" in scores and scores["alignment"]["error_rate"] is not None:
        line += f", AER {scores['alignment']['error_rate']:.3f}"
    log.info(line)
    for bucket in scores["by_length"]:
        words = f"{bucket['from']}-{bucket['to']}" if bucket["to"] else f"{bucket['from']}+"
        log.info(
            "  %6s words: BLEU %6.2f  brevity penalty %.3f  (%d sentences)",
            words,
            bucket["score"],
            bucket["brevity_penalty"],
            bucket["sentences"],
        )


def add_statistical_aligners(
    scores: Mapping[str, dict[str, Any]],
    sets: Mapping[str, Sequence[Example]],
    train: Split,
    config: Config,
) -> None:
    """Puts statistical aligners' error rates beside the model's, where gold links exist."""
    settings = config.evaluation
    gold = {
        name: [(e.source, e.target, e.gold) for e in sentences if e.gold is not None]
        for name, sentences in sets.items()
        if "alignment" in scores.get(name, {})
    }
    if not gold:
        return
    wanted = min(settings.alignment.statistical_aligner_pairs, len(train))
    texts = [train.text(int(n)) for n in np.linspace(0, len(train) - 1, wanted)]
    found = statistical_alignment_scores(
        [(source.split(" "), target.split(" ")) for source, target in texts],
        gold,
        resamples=settings.resamples,
        confidence=settings.confidence,
        progress=config.trainer.progress,
    )
    for name, beside in found.items():
        scores[name]["alignment"]["statistical_aligners"] = beside
        rates = [beside[aligner]["error_rate"] for aligner in ("hmm", "fast_align")]
        if None not in rates:
            log.info("%s: AER %.3f by an HMM, %.3f by FastAlign", name, *rates)


def own_dictionary(
    config: Config, trainer: pl.Trainer, model: Translator, prepared: Prepared, codec: Codec
) -> dict[str, str] | None:
    """The dictionary a model's attention teaches, for `search.replace_unk`; None where it cannot.

    It is learnt whatever `search.replace_unk` says, so that the checkpoint serves both ways.
    """
    attends = isinstance(model.decoder.context, Attention)
    wanted = config.evaluation.dictionary_sample
    if not (attends and wanted and codec.source.kind == "words"):
        return None  # subwords leave no word unknown
    lexicon = Lexicon(model, codec, prepared.train, config.evaluation.alignment.null)
    trainer.test(lexicon, training_sample(config, prepared, trainer, wanted), verbose=False)
    log.info("dictionary from attention: %d source words", len(lexicon.dictionary))
    return lexicon.dictionary


def training_sample(
    config: Config, prepared: Prepared, trainer: pl.Trainer, pairs: int
) -> DataLoader[Batch]:
    """The same training pairs for every run on a text: evenly spaced, sorted by length.

    Each rank gets its share of the batches.
    """
    train, size = prepared.train, config.search.batch_size
    rank, world = trainer.global_rank, trainer.world_size
    wanted = min(pairs, len(train))
    rows = np.linspace(0, len(train) - 1, wanted).astype(np.int64)
    rows = rows[np.argsort(train.sizes[rows].max(1), kind="stable")]
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return DataLoader([train.batch(b) for b in batches[rank::world] or [rows[:0]]], batch_size=None)  # type: ignore[arg-type]
