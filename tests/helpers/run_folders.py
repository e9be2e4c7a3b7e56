"""Run folders as training leaves them, made up: the same files, with translations that decay as the models' do.

The language is a word-for-word dictionary with pairs turned round, so that alignments have a diagonal and reorderings;
RNNencdec loses words faster with length than RNNsearch. Numbers are consistent: BLEU comes from the integer statistics.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from nmt.config.keys import EDGES
from nmt.evaluation.scores import REGISTERED

"""A run folder of `regime=tiny` as nmt wrote it with a results.json of schema 1; its tests have 12 and 14 sentences."""

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


def ngram_statistics(hypothesis: list[str], reference: list[str]) -> list[int]:
    """4 correct, 4 total n-gram counts, hypothesis and reference length."""
    correct, total = [], []
    for order in range(1, 5):
        written = Counter(zip(*(hypothesis[i:] for i in range(order)), strict=False))
        wanted = Counter(zip(*(reference[i:] for i in range(order)), strict=False))
        correct.append(sum((written & wanted).values()))
        total.append(sum(written.values()))
    return [*correct, *total, len(hypothesis), len(reference)]


def bleu(statistics: np.ndarray) -> float:
    summed = [int(value) for value in statistics.sum(0)]
    return BLEU.compute_bleu(summed[:4], summed[4:8], summed[8], summed[9]).score


def corpus(pairs: int, seed: int = 0) -> list[dict[str, Any]]:
    """Source, reference and gold alignment (source position of each target word) of a test set."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(pairs):
        length = int(np.clip(draw.gamma(3.2, 8.5), 3, 78))
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
    """Writes one run folder and returns it."""
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
    tests = {}
    for index, name in enumerate(sets):
        rows = corpus(pairs, index)
        tests[name] = _test_set(folder, name, rows, draw, attention, max_length, kept)
    updates = list(range(400, 4001, 400))
    fall = [3.2 * math.exp(-u / 1500) for u in updates]
    results = {
        "name": config["name"],
        "title": model,
        "experiment": config["experiment"],
        "regime": "laptop",
        "config": config,
        "overrides": overrides,
        "command": f"python -m nmt.train {' '.join(overrides)}",
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "parameters": 2_345_678 if attention else 1_987_654,
        "model": model,
        "scoring": scoring.title() if attention else "none",
        "max_length": max_length,
        "seed": seed,
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
        "history": [
            {
                "update": u,
                "train_nll_per_word": 1.4 + f,
                "nll_per_word": 1.6 + f,
                "bleu": 30 - 9 * f,
            }
            for u, f in zip(updates, fall, strict=True)
        ],
        "test": tests,
        "scores": {
            key: score.description()
            for key, score in REGISTERED.items()
            if score.default and (attention or key not in WITH_ATTENTION)
        },
    }
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")
    return folder


WITH_ATTENTION = {
    *("attention_entropy", "eos_weight", "eos_share"),
    *("alignment_error_rate", "precision", "recall"),
}


def _test_set(
    folder: Path,
    name: str,
    rows: list[dict],
    draw: np.random.Generator,
    attention: bool,
    cap: int,
    kept: int,
) -> dict[str, Any]:
    (folder / "translations").mkdir(exist_ok=True)
    (folder / "alignments").mkdir(exist_ok=True)
    lengths = np.array([len(row["source"]) for row in rows])
    chosen = set(
        np.argsort(lengths, kind="stable")[
            np.linspace(0, len(rows) - 1, min(kept, len(rows))).astype(int)
        ]
    )
    statistics, no_unk, nlls = [], [], []
    translations, alignments = [], []
    for number, row in enumerate(rows):
        length = len(row["source"])
        beyond = max(0, length - cap) / 40
        wrong = (0.08 + beyond * 0.2) if attention else min(0.8, 0.1 + 0.014 * length + beyond)
        hypothesis, order = [], []
        for word, j in zip(row["reference"], row["order"], strict=True):
            if draw.random() > wrong:
                hypothesis.append(word)
                order.append(j)
            elif draw.random() < 0.6:
                hypothesis.append(str(draw.choice(FRENCH)) if draw.random() < 0.8 else "<unk>")
                order.append(j)
        hypothesis = hypothesis or ["le"]
        order = order or [0]
        known = number % 3 > 0
        nll = 1.2 * length * (1 + (0.1 if attention else 0.3 + beyond))
        record = {
            "id": number,
            "source": row["source"],
            "reference": row["reference"],
            "hypothesis": hypothesis,
            "raw_reference": " ".join(row["reference"]),
            "detokenised": " ".join(hypothesis),
            "length": length,
            "no_unk": known,
            "unknown_words": [0, 0] if known else [number % 2, 1 + number % 5],
            "nll": round(nll, 4),
            "score": round(-nll * 0.8, 4),
            "bleu_stats": ngram_statistics(hypothesis, row["reference"]),
        }
        if attention:
            record["attention_entropy"] = round(0.4 + length / 100, 4)
            record["eos_weight"] = round(0.02 + length / 1000, 5)
            record["alignment_counts"] = [length, length, length - 2, length - 2, 0, length]
        if known:
            alternative = [word for word in hypothesis if word != "<unk>"]
            record["hypothesis_no_unk"] = alternative
            record["bleu_stats_no_unk"] = ngram_statistics(alternative, row["reference"])
            no_unk.append((length, record["bleu_stats_no_unk"]))
        statistics.append(record["bleu_stats"])
        nlls.append(nll)
        translations.append(record)
        if number in chosen:
            alignments.append(_alignment(record, order, draw, attention))
    _write_lines(folder / "translations" / f"{name}.jsonl", translations)
    _write_lines(folder / "alignments" / f"{name}.jsonl", alignments)
    table, known_table = np.array(statistics), np.array([s for _, s in no_unk])
    known_lengths = np.array([length for length, _ in no_unk])
    by_length = []
    for low, high in zip((1, *(edge + 1 for edge in EDGES)), (*EDGES, None), strict=True):
        inside = (lengths >= low) & (lengths <= (high or 10**6))
        if not inside.any():
            continue
        known_inside = (known_lengths >= low) & (known_lengths <= (high or 10**6))
        summed = table[inside].sum(0)
        ratio = summed[8] / summed[9]
        score = bleu(table[inside])
        attended = {
            "attention_entropy": _alone(0.4 + low / 100),
            "eos_weight": _alone(0.02 + low / 1000),
            "alignment_error_rate": {**_alone(0.08 + low / 400), "low": 0.07, "high": 0.3},
            "precision": _alone(0.91 - low / 400),
            "recall": _alone(0.9 - low / 400),
            "eos_share": _alone(0.03),
        }
        by_length.append(
            {
                "from": low,
                "to": high,
                "sentences": int(inside.sum()),
                "score": score,
                "low": max(0.0, score - 1.4),
                "high": min(100.0, score + 1.5),
                "no_unk": _score(known_table[known_inside]) if known_inside.any() else None,
                "mean_length": float(lengths[inside].mean()),
                "sacrebleu": {"score": score - 1, "low": max(0.0, score - 2), "high": score + 1},
                "chrf": {"score": score + 20, "low": score + 18, "high": score + 22},
                "brevity_penalty": _alone(min(1.0, math.exp(1 - 1 / ratio))),
                "length_ratio": _alone(float(ratio)),
                "nll_per_word": _alone(
                    float(np.array(nlls)[inside].sum() / (summed[9] + inside.sum()))
                ),
                **(attended if attention else {}),
            }
        )
    result: dict[str, Any] = {
        "pairs": len(rows),
        "search": {"beam_size": 12},
        "bleu": {"all": _score(table), "no_unk": _score(known_table)},
        "sacrebleu": {
            **_alone(bleu(table) - 1.1),
            "signature": "nrefs:1|case:mixed|tok:13a|version:2.6.0",
        },
        "chrf": {**_alone(bleu(table) + 20), "signature": "nrefs:1|nc:6"},
        "nll_per_sentence": _alone(float(np.mean(nlls))),
        "nll_per_word": _alone(1.8),
        "perplexity": _alone(6.1),
        "length_ratio": _alone(float(table[:, 8].sum() / table[:, 9].sum())),
        "brevity_penalty": _alone(0.98),
        "by_length": by_length,
        "bucket_by": "source",
    }
    if attention:
        result |= {"attention_entropy": _alone(0.62), "eos_weight": _alone(0.04)}
        result["alignment"] = {
            "sentences": len(rows),
            "alignment_error_rate": {"score": 0.11, "low": 0.1, "high": 0.13},
            "precision": _alone(0.9),
            "recall": _alone(0.88),
            "eos_share": _alone(0.03),
        }
    return result


def _alone(score: float) -> dict[str, Any]:
    """A score whose interval is not known."""
    return {"score": score, "low": None, "high": None}


def _score(statistics: np.ndarray) -> dict[str, Any]:
    score = bleu(statistics)
    return {
        "score": score,
        "low": max(0.0, score - 0.7),
        "high": min(100.0, score + 0.8),
        "sentences": len(statistics),
    }


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
    return {
        "id": record["id"],
        "length": record["length"],
        "source": source,
        "target": target,
        "reference": record["reference"],
        "score": record["score"],
        "weights": np.round(weights, 5).tolist() if attention else None,
        "log_normaliser": np.round(log_normaliser, 5).tolist() if attention else None,
        "attention_entropy": np.round(-(weights * np.log(weights)).sum(1), 5).tolist()
        if attention
        else None,
        "log_probability": np.round(-draw.exponential(0.6, len(target)), 5).tolist(),
        "runners_up": runners_up,
    }


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def make_ten(folder: Path, pairs: int = 3000, **options: Any) -> list[Path]:
    """A sweep's folder: RNNencdec and RNNsearch, caps 30 and 50, seeds 1 to 3 for the longer cap."""
    jobs = [
        (model, cap, seed)
        for model in ("RNNencdec", "RNNsearch")
        for cap, seeds in ((30, (1, 2)), (50, (1, 2, 3)))
        for seed in seeds
    ]
    return [
        make_run(
            folder / str(number), model=model, max_length=cap, seed=seed, pairs=pairs, **options
        )
        for number, (model, cap, seed) in enumerate(jobs)
    ]
