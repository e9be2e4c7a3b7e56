"""Run folders as training leaves them, made up: the same files, with translations that decay as the models' do.

The language is a word-for-word dictionary with pairs turned round, so that alignments have a diagonal and reorderings;
RNNencdec loses words faster with length than RNNsearch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.schema import EvaluationConfig
from nmt.evaluation.records import write_alignments, write_translations
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.scores_csv import score_table, write_scores
from nmt.evaluation.summary import score_set

MEASURED = ["nll_per_word", "attention_entropy", "alignment_error_rate"]  # beside BLEU

MARKUP = "</script><script>document.title='broken'</script>"
"""A token that would run if it were ever taken for markup."""

ENGLISH_TEXT = """
the a of in agreement on European Economic Area was signed August 1992 it should be noted
that marine environment least known environments destruction equipment means Syria can no
longer produce new chemical weapons report admitting privilege right doctor patient
hospital medical centre carry out diagnosis procedure based his status health care worker
said man will change future family people have more time country government minister law
year work world water house between against under after before
"""
ENGLISH = ENGLISH_TEXT.split()
FRENCH_TEXT = """
le un de dans accord sur européenne économique zone était signé août 1992 il convient
noter que marin environnement moins connu environnements destruction équipement signifie
Syrie peut plus longtemps produire nouvelles chimiques armes rapport admettre privilège
droit médecin patient hôpital médical centre mener hors diagnostic procédure fondée son
statut santé soins travailleur dit homme va changer avenir famille gens ont davantage
temps pays gouvernement ministre loi année travail monde eau maison entre contre sous
après avant
"""
FRENCH = FRENCH_TEXT.split()


def corpus(pairs: int, seed: int = 0) -> list[dict[str, Any]]:
    """Source, reference and gold alignment (source position of each target word) of a test set."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(pairs):
        length = int(4 * 20 ** (0.618 * number % 1))  # 4 to 79, as many of 5 to 10 as of 25 to 50
        if number % 97 == 11:
            length = 60
        words = draw.integers(0, min(len(ENGLISH), len(FRENCH)), length)
        order = list(range(length))
        position = 0
        while position < length - 1 and number % 5:
            if draw.random() < 0.18:
                order[position], order[position + 1] = order[position + 1], order[position]
                position += 1
            position += 1
        source = [ENGLISH[word] for word in words]
        reference = [FRENCH[words[j]] for j in order]
        if number % 40 == 7:
            source[1] = reference[order.index(1)] = MARKUP
        rows.append({"source": source, "reference": reference, "order": order})
    return rows


def make_run(
    folder: Path,
    *,
    model: str = "RNNsearch",
    max_length: int = 50,
    seed: int = 1,
    pairs: int = 200,
    kept: int = 60,
    sets: tuple[str, ...] = ("newstest",),
    scoring: str = "additive",
) -> Path:
    """Writes one run folder and returns it; its first test set has `pairs` sentences, others a quarter."""
    draw = np.random.default_rng([seed, max_length, len(model)])
    folder.mkdir(parents=True)
    attention = model == "RNNsearch"
    config = {
        "seed": seed,
        "name": f"{model}-{max_length}",
        "experiment": f"{model.lower()}{max_length}",
        "model": {
            "title": model,
            "scoring": {"_target_": f"nmt.layers.scoring.{scoring.title()}"} if attention else None,
            "size": {"hidden": 256},
        },
        "data": {"title": "built-in", "max_length": max_length, "languages": ["en", "fr"]},
        "search": {"beam_size": 12, "length_penalty": 0.0},
        "trainer": {"max_steps": 4000},
    }
    overrides = [f"+experiment={model.lower()}{max_length}", f"seed={seed}"]
    (folder / ".hydra").mkdir()
    (folder / ".hydra" / "overrides.yaml").write_text("".join(f"- {o}\n" for o in overrides))
    settings = EvaluationConfig(scores=MEASURED, resamples=20)
    table = []
    for index, name in enumerate(sets):
        rows = corpus(pairs // 4 if index else pairs, index)
        records, alignments = _test_set(rows, draw, attention, max_length, kept)
        write_translations(folder, name, records)
        write_alignments(folder, name, alignments)
        table += score_set(name, records, settings)
    write_scores(folder, score_table(table))
    updates = np.arange(400, 4001, 400)
    fall = 3.2 * np.exp(-updates / 1500)
    columns = (updates.tolist(), 1.4 + fall, 1.6 + fall, 30 - 9 * fall)
    names = ("update", "train_nll_per_word", "nll_per_word", "bleu")
    history = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    results = {
        "name": config["name"],
        "title": model,
        "experiment": config["experiment"],
        "regime": "laptop",
        "config": config,
        "overrides": overrides,
        "model": model,
        "command": f"python -m nmt.train {' '.join(overrides)}",
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "parameters": 2_345_678 if attention else 1_987_654,
        "scoring": scoring.title() if attention else "none",
        "max_length": max_length,
        "seed": seed,
        "history": history,
        "train": {
            "updates": 4000,
            "epochs": 6.4,
            "hours": 0.31 + seed / 100,
            "device": "cpu",
            "sentences_per_second": 290.1,
            "target_words_per_second": 6210.4,
            "nll_per_sentence": 31.3,
            "peak_memory": 812_000_000,
        },
        "valid": {
            "nll_per_sentence": 36.2,
            "nll_per_word": 1.61,
            "perplexity": 5.0,
            "bleu": 27.2,
            "update": 4000,
        },
    }
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")
    return folder


def _test_set(
    rows: list[dict[str, Any]], draw: np.random.Generator, attention: bool, cap: int, kept: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The records of translations and of alignments."""
    by_length = np.argsort([len(row["source"]) for row in rows], kind="stable")
    chosen = set(by_length[np.linspace(0, len(rows) - 1, min(kept, len(rows))).astype(int)])
    translations, alignments = [], []
    for number, row in enumerate(rows):
        length = len(row["source"])
        beyond = max(0, length - cap) / 40
        wrong = (0.08 + beyond * 0.2) if attention else min(0.8, 0.1 + 0.01 * length + beyond)
        hypothesis, order = [], []
        for word, j in zip(row["reference"], row["order"], strict=True):
            if draw.random() > wrong:
                hypothesis.append(word)
                order.append(j)
            elif draw.random() < 0.6:
                hypothesis.append(str(draw.choice(FRENCH)) if draw.random() < 0.8 else "<unk>")
                order.append(j)
        hypothesis, order = hypothesis or ["le"], order or [0]
        known = number % 8 > 0
        nll = 1.2 * length * (1 + (0.1 if attention else 0.3 + beyond))
        record = {
            "id": number,
            "source": row["source"],
            "reference": row["reference"],
            "hypothesis": hypothesis,
            "detokenised": " ".join(hypothesis),
            "raw_reference": " ".join(row["reference"]),
            "length": length,
            "no_unk": known,
            "nll": round(nll, 4),
            "log_probability": round(-nll * 0.8, 4),
            "bleu_stats": sentence_statistics(hypothesis, row["reference"]).tolist(),
        }
        if attention:
            record["attention_entropy"] = round(0.4 + length / 100, 4)
            record["eos_weight"] = round(0.02 + length / 1000, 5)
            record["alignment_counts"] = [length, length, length - 2, length - 2, 0, length]
        if known:
            alternative = [word for word in hypothesis if word != "<unk>"]
            record["hypothesis_no_unk"] = alternative
            statistics = sentence_statistics(alternative, row["reference"])
            record["bleu_stats_no_unk"] = statistics.tolist()
        translations.append(record)
        if number in chosen:
            alignments.append(_alignment(record, order, draw, attention))
    return translations, alignments


def _alignment(
    record: dict, order: list[int], draw: np.random.Generator, attention: bool
) -> dict[str, Any]:
    source = [*record["source"], "</s>"]
    target = [*record["hypothesis"], "</s>"]
    centres = np.array([*order, len(source) - 1])[:, None]
    distance = np.abs(np.arange(len(source))[None, :] - centres)
    energies = 4.0 - 2.2 * np.sqrt(distance) + draw.normal(0, 0.7, distance.shape)
    log_normaliser = np.log(np.exp(energies).sum(1))
    weights = np.exp(energies - log_normaliser[:, None])
    runners_up = []
    for _ in target:
        words = draw.choice(FRENCH, 5, replace=False)
        chances = -np.sort(draw.exponential(2.5, 5)) - 0.3
        step = zip(words, chances, strict=True)
        runners_up.append([[str(word), round(float(chance), 4)] for word, chance in step])
    entropy = -(weights * np.log(weights)).sum(1)
    return {
        **{key: record[key] for key in ("id", "length", "reference", "log_probability")},
        "source": source,
        "target": target,
        "runners_up": runners_up,
        "weights": weights.tolist() if attention else None,
        "log_normaliser": log_normaliser.tolist() if attention else None,
        "attention_entropy": entropy.tolist() if attention else None,
        "word_log_probabilities": (-draw.exponential(0.6, len(target))).tolist(),
    }
