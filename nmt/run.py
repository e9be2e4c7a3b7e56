"""From a trained model to a finished run folder: test sets, results.json, figures, W&B."""

from __future__ import annotations

import dataclasses
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytorch_lightning as pl
import torch
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.loggers import Logger
from torch.utils.data import DataLoader

from nmt.config import Config, StressConfig, TextConfig, plain
from nmt.data.batch import Batch
from nmt.data.prepare import Prepared
from nmt.data.splits import Split
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import SPECIAL, Encoding
from nmt.devices import name_of, peak_memory
from nmt.errors import Refusal
from nmt.evaluation import records, results, summary
from nmt.evaluation.alignment import parse_links
from nmt.evaluation.stress import Pair, stress_sets
from nmt.evaluation.yardstick import check_installed, yardsticks
from nmt.layers import Attention
from nmt.models import Translator, build
from nmt.models.lexicon import Lexicon
from nmt.models.reading import Languages
from nmt.models.stored import read_checkpoint, store_dictionary
from nmt.models.testing import Example, Likelihood, Testing
from nmt.report.figures import draw_run
from nmt.report.page import build_page
from nmt.report.runs import Run
from nmt.report.wandb_panels import log_test
from nmt.training.checkpoints import BEST
from nmt.training.job import Watch
from nmt.training.loggers import PatientWandbLogger, Row, check_logger

log = logging.getLogger(__name__)

PAGE = "report.html"


def examples(split: Split, text: TextConfig) -> list[Example]:
    """A prepared test set, sentence by sentence.

    Raises:
        Refusal: for a gold alignment that does not fit, naming file and line.
    """
    found = []
    for number, pair in enumerate(split):
        gold = None
        if pair["alignment"] is not None:
            where = f"data.test.{split.name}.alignment={text.alignment}:{pair['line'] + 1}"
            lengths = len(pair["source"]), len(pair["target"])
            links, base = pair["alignment"], text.alignment_base
            gold = parse_links(links, base=base, where=where, lengths=lengths)
        found.append(Example(number, pair["source"], pair["target"], pair["target_text"], gold))
    return found


def check_early(config: Config) -> None:
    """Refuses at the start what would be found missing after hours of work.

    Raises:
        Refusal: for an extra, a device, a key of W&B, or a class that is not there.
    """
    if config.evaluation.alignment.yardstick:
        check_installed()
    check_logger(config.logger)
    if config.trainer.accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise Refusal(
            f"trainer.accelerator={config.trainer.accelerator}: no GPU is there; "
            "take trainer.accelerator=cpu, or auto"
        )
    with torch.device("meta"):
        build(config, len(SPECIAL), len(SPECIAL))


def languages(config: Config, source: Encoding, target: Encoding) -> Languages:
    """The vocabularies of a run, with the detokeniser of its target language."""
    moses = tokeniser(config.data.languages[1], config.tokenizer.normalise)
    return Languages(source, target, moses.detokenise)


def test_sets(
    trainer: pl.Trainer,
    model: Translator,
    config: Config,
    coders: Languages,
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
        if kept:  # the named sentence among them
            named = config.report.sentence
            kept |= {e.id for e in sentences if " ".join(e.source) == named}
        testing = Testing(
            model,
            coders,
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


def add_yardstick(
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
    wanted = min(settings.alignment.yardstick_pairs, len(train))
    texts = [train.text(int(n)) for n in np.linspace(0, len(train) - 1, wanted)]
    found = yardsticks(
        [(source.split(" "), target.split(" ")) for source, target in texts],
        gold,
        resamples=settings.resamples,
        confidence=settings.confidence,
        progress=config.trainer.progress,
    )
    for name, beside in found.items():
        scores[name]["alignment"]["yardstick"] = beside
        rates = {aligner: beside[aligner]["error_rate"] for aligner in ("hmm", "fast_align")}
        log.info("%s: AER %.3f by an HMM, %.3f by FastAlign", name, *rates.values())


def stress_examples(
    name: str, sentences: Sequence[Example], stress: StressConfig
) -> dict[str, list[Example]]:
    """Test sets of joined neighbouring sentences, one for each length of `stress.lengths`."""
    pairs = [Pair(tuple(e.source), tuple(e.target), e.gold, e.text, (e.id,)) for e in sentences]
    sets = stress_sets(name, pairs, stress.lengths, stress.pairs)
    return {
        joined: [Example(n, p.source, p.target, p.text, p.gold) for n, p in enumerate(inputs)]
        for joined, inputs in sets.items()
    }


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


def finish(
    config: Config,
    folder: Path,
    trainer: pl.Trainer,
    model: Translator,
    prepared: Prepared,
    sets: Mapping[str, Sequence[Example]],
    watch: Watch,
) -> None:
    """Tests the best checkpoint of a training run and writes all that it leaves behind."""
    trainer.strategy.barrier()
    typed = [config.model._target_, str((config.model.scoring or {}).get("_target_"))]
    trust = [target.rpartition(".")[0] for target in typed]  # it ran all the while
    best = read_checkpoint(folder / "checkpoints" / BEST, trust)
    model.load_state_dict(best.weights)
    coders = languages(config, prepared.source_vocabulary, prepared.target_vocabulary)
    train = training_summary(config, trainer, model, prepared, watch)
    dictionary = own_dictionary(config, trainer, model, prepared, coders)
    if dictionary is not None and trainer.is_global_zero:
        store_dictionary(best.path, dictionary)
    scores = test_sets(trainer, model, config, coders, sets, folder, dictionary)
    if not trainer.is_global_zero:
        return
    if config.evaluation.alignment.yardstick:
        add_yardstick(scores, sets, prepared.train, config)
    content = describe(
        config,
        model,
        train=train,
        valid=watch.checkpoints.best or {},
        history=watch.checkpoints.history,
        test=scores,
    )
    publish(config, folder, content, trainer.loggers)


def training_summary(
    config: Config, trainer: pl.Trainer, model: Translator, prepared: Prepared, watch: Watch
) -> dict[str, Any]:
    """`train` of results.json; the NLL is of a fixed sample of the training pairs."""
    updates = trainer.global_step
    summary = {
        "updates": updates,
        "epochs": cast(Any, trainer).datamodule.schedule.epoch(updates),
        "hours": watch.checkpoints.hours(),
        "device": name_of(trainer.strategy.root_device),
        "devices": trainer.world_size,
        "precision": str(trainer.precision),
        **watch.progress.rates(),
        "peak_memory": peak_memory(trainer.strategy.root_device),
        "nll_per_sentence": None,
    }
    if config.evaluation.train_sample:
        likelihood = Likelihood(model)
        sample = training_sample(config, prepared, trainer, config.evaluation.train_sample)
        trainer.test(likelihood, sample, verbose=False)
        summary["nll_per_sentence"] = likelihood.nll_per_sentence
    return summary


def own_dictionary(
    config: Config, trainer: pl.Trainer, model: Translator, prepared: Prepared, coders: Languages
) -> dict[str, str] | None:
    """The dictionary a model's attention teaches, for `search.replace_unk`; None where it cannot.

    It is learnt whatever `search.replace_unk` says, so that the checkpoint serves both ways.
    """
    attends = isinstance(model.decoder.context, Attention)
    wanted = config.evaluation.dictionary_sample
    if not (attends and wanted and coders.source.kind == "words"):
        return None  # subwords leave no word unknown
    lexicon = Lexicon(model, coders, prepared.train, config.evaluation.alignment.null)
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


def publish(
    config: Config, folder: Path, content: dict[str, Any], loggers: Sequence[Logger]
) -> None:
    """Figures, page, W&B and, last of all, results.json: where it exists the run is finished."""
    figures: list[Path] = []
    page: Path | None = None
    try:
        figures = draw_run(folder, config.report, content)
        run = Run(config.name, content, folder)
        title = f"{config.name} on {config.data.title}"
        page = build_page([run], folder / PAGE, config.report, title=title)
    except Exception:  # what was measured is not lost over a picture of it
        log.exception("not all figures could be drawn; going on")
    for logger in loggers:
        updates = content["train"]["updates"]
        if isinstance(logger, PatientWandbLogger) and logger.is_new(updates, Row.TEST):
            log_test(logger.experiment, content, figures, page)
    results.write(folder, content)
    log.info("everything about this run, figures and %s: %s", PAGE, folder)


def describe(config: Config, model: Translator, **measured: Any) -> dict[str, Any]:
    """The content of results.json: what was asked for beside what was `measured`."""
    scoring = str((config.model.scoring or {}).get("_target_") or "none")
    return results.build(
        name=config.name,
        title=config.model.title,
        experiment=config.experiment,
        regime=config.regime,
        model=config.model._target_.rpartition(".")[2],
        scoring=scoring.rpartition(".")[2],
        max_length=config.data.max_length,
        seed=config.seed,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        config=plain(config),
        overrides=list(HydraConfig.get().overrides.task),
        command=command_line(),
        **measured,
    )


def command_line() -> str:
    """The command as it can be typed again."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"python -m {spec.name}" if spec else f"python {sys.argv[0]}"
    return " ".join([program, *map(shlex.quote, sys.argv[1:])])
