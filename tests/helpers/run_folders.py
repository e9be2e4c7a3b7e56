"""Writes made-up run folders. Translations get worse with sentence length, as those of real models do.

A reference is a word-for-word translation of the source, except that some neighbouring words are swapped. So
alignments are diagonal except for these swaps. RNNencdec loses more words in long sentences than RNNsearch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.schema import EvaluationConfig
from nmt.evaluation.measured import score_set
from nmt.evaluation.records import write_alignments, write_translations
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.scores_csv import score_table, write_scores

MEASURED = ["nll_per_word", "attention_entropy", "alignment_error_rate"]  # besides BLEU
MAX_LENGTH = 50

MARKUP = "</script><script>document.title='broken'</script>"
"""A token that runs a script if a page inserts it as HTML."""

TEXTS = """
the a of in agreement on European Economic Area was signed August 1992 it is that
le un de dans accord sur européenne économique zone était signé août 1992 il est que
"""
ENGLISH, FRENCH = (line.split() for line in TEXTS.strip().splitlines())


def make_run(
    folder: Path,
    *,
    model: str = "RNNsearch",
    seed: int = 1,
    pairs: int = 200,
    kept: int = 60,
    sets: tuple[str, ...] = ("newstest",),
) -> Path:
    """Writes one run folder and returns it.

    The first test set has `pairs` sentences, each other set a quarter as many. At most `kept`
    sentences of a set have an alignment.
    """
    draw = np.random.default_rng([seed, len(model)])
    attends = model == "RNNsearch"
    table = []
    for index, test_set in enumerate(sets):
        count = pairs // 4 if index else pairs
        pair = np.random.default_rng(index)
        translated = [_translated(k, pair, draw, attends) for k in range(count)]
        by_length = sorted(translated, key=lambda each: each[0]["length"])
        chosen = np.linspace(0, count - 1, min(kept, count)).astype(int)
        records = [record for record, _ in translated]
        write_translations(folder, test_set, records)
        rows = [_alignment(*by_length[k], draw, attends) for k in sorted(set(chosen))]
        write_alignments(folder, test_set, rows)
        table += score_set(test_set, records, EvaluationConfig(scores=MEASURED, resamples=20))
    write_scores(folder, score_table(table))
    overrides = [f"+experiment={model.lower()}{MAX_LENGTH}", f"seed={seed}"]
    name = f"{model}-{MAX_LENGTH}"
    scoring = {"_target_": "nmt.layers.scoring.Additive"} if attends else None
    results = {
        "name": name,
        "title": model,
        "model": model,
        "seed": seed,
        "max_length": MAX_LENGTH,
        "config": {
            "seed": seed,
            "name": name,
            "model": {"title": model, "scoring": scoring, "size": {"hidden": 256}},
            "data": {"title": "built-in", "max_length": MAX_LENGTH, "languages": ["en", "fr"]},
            "search": {"beam_size": 12, "length_penalty": 0.0},
            "trainer": {"max_steps": 4000},
        },
        "overrides": overrides,
        "command": f"python -m nmt.train {' '.join(overrides)}",
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "parameters": 2_345_678 if attends else 1_987_654,
        "history": [_validation(update) for update in range(400, 4001, 400)],
        "train": {"updates": 4000, "epochs": 6.4, "hours": 0.31, "device": "cpu"},
        "valid": {"nll_per_sentence": 36.2, "nll_per_word": 1.61, "bleu": 27.2, "update": 4000},
    }
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")
    return folder


def _validation(update: int) -> dict[str, float]:
    """Returns a made-up entry of the history; the losses fall with the update, and BLEU rises."""
    fall = 3.2 * np.exp(-update / 1500)
    losses = {"train_nll_per_word": 1.4 + fall, "nll_per_word": 1.6 + fall}
    return {"update": update, **losses, "bleu": 30 - 9 * fall}


def _translated(
    number: int, pair: np.random.Generator, draw: np.random.Generator, attends: bool
) -> tuple[dict[str, Any], np.ndarray]:
    """Returns a made-up record, and the source position of each word of its hypothesis.

    `pair` draws the source and the reference; `draw` draws the errors of the model.
    """
    length = int(4 * 20 ** (0.618 * number % 1))  # 4 to 79, uniform in the logarithm of the length
    words = pair.integers(len(ENGLISH), size=length)
    order = np.arange(length)
    if number % 5:
        turned = 2 * np.flatnonzero(pair.random(length // 2) < 0.3)
        order[turned], order[turned + 1] = turned + 1, turned
    source = [ENGLISH[word] for word in words]
    reference = [FRENCH[word] for word in words[order]]
    if number % 40 == 7:
        source[1] = reference[order.tolist().index(1)] = MARKUP
    beyond = max(0, length - MAX_LENGTH) / 40
    wrong = (0.08 + beyond * 0.2) if attends else min(0.8, 0.1 + 0.01 * length + beyond)
    # `fate` >= 1: the right word; > 0.5: a random word; > 0.4: `<unk>`; otherwise no word.
    fate = draw.random(length) / wrong
    fate[0] = 1
    hypothesis = [
        word if luck >= 1 else str(draw.choice(FRENCH)) if luck > 0.5 else "<unk>"
        for word, luck in zip(reference, fate, strict=True)
        if luck > 0.4
    ]
    nll = 1.2 * length * (1 + (0.1 if attends else 0.3 + beyond))
    record = {
        "id": number,
        "source": source,
        "reference": reference,
        "hypothesis": hypothesis,
        "detokenised": " ".join(hypothesis),
        "raw_reference": " ".join(reference),
        "length": length,
        "no_unk": number % 8 > 0,
        "nll": round(nll, 4),
        "log_probability": round(-nll * 0.8, 4),
        "bleu_stats": sentence_statistics(hypothesis, reference).tolist(),
    }
    if attends:
        record["attention_entropy"] = round(0.4 + length / 100, 4)
        record["eos_weight"] = round(0.02 + length / 1000, 5)
        record["alignment_counts"] = [length, length, length - 2, length - 2, 0, length]
    if record["no_unk"]:
        known = [word for word in hypothesis if word != "<unk>"]
        record["hypothesis_no_unk"] = known
        record["bleu_stats_no_unk"] = sentence_statistics(known, reference).tolist()
    return record, order[fate > 0.4]


def _alignment(
    record: dict[str, Any], order: np.ndarray, draw: np.random.Generator, attends: bool
) -> dict[str, Any]:
    """Returns a made-up alignment record.

    The weights of a target word decrease with the distance from its source position (`order`).
    """
    source = [*record["source"], "</s>"]
    target = [*record["hypothesis"], "</s>"]
    centres = np.append(order, len(source) - 1)[:, None]
    distance = np.abs(np.arange(len(source)) - centres)
    energies = 4.0 - 2.2 * np.sqrt(distance) + draw.normal(0, 0.7, distance.shape)
    log_normaliser = np.log(np.exp(energies).sum(1))
    weights = np.exp(energies - log_normaliser[:, None])
    attention = {
        "weights": weights.tolist(),
        "log_normaliser": log_normaliser.tolist(),
        "attention_entropy": (-weights * np.log(weights)).sum(1).tolist(),
    }
    others = [[word, -0.3 - place / 2] for place, word in enumerate(FRENCH[:5])]
    return {
        **{key: record[key] for key in ("id", "length", "reference", "log_probability")},
        "source": source,
        "target": target,
        "runners_up": [others] * len(target),
        **(attention if attends else dict.fromkeys(attention)),
        "word_log_probabilities": (-draw.exponential(0.6, len(target))).tolist(),
    }
