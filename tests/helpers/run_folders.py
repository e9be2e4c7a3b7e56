"""Run folders as training leaves them, made up: the same files, with translations that decay as the models' do.

The language is a word-for-word dictionary with pairs turned round, so that alignments have a diagonal and reorderings;
RNNencdec loses words faster with length than RNNsearch. Numbers are consistent: BLEU comes from the integer statistics.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU

from nmt.config.keys import EDGES
from nmt.evaluation.table import score_table, write_scores

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
    tables = []
    for index, name in enumerate(sets):
        rows = corpus(pairs, index)
        tables.append(_test_set(folder, name, rows, draw, attention, max_length, kept))
    write_scores(folder, score_table(pd.concat(tables).to_dict("records")))
    updates = np.arange(400, 4001, 400)
    fall = 3.2 * np.exp(-updates / 1500)
    columns = (updates.tolist(), 1.4 + fall, 1.6 + fall, 30 - 9 * fall)
    names = ("update", "train_nll_per_word", "nll_per_word", "bleu")
    history = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    results = {
        **{"name": config["name"], "title": model, "experiment": config["experiment"]},
        **{"regime": "laptop", "config": config, "overrides": overrides, "model": model},
        "command": f"python -m nmt.train {' '.join(overrides)}",
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "parameters": 2_345_678 if attention else 1_987_654,
        "scoring": scoring.title() if attention else "none",
        **{"max_length": max_length, "seed": seed, "history": history},
        "train": {
            **{"updates": 4000, "epochs": 6.4, "hours": 0.31 + seed / 100, "device": "cpu"},
            **{"sentences_per_second": 290.1, "target_words_per_second": 6210.4},
            **{"nll_per_sentence": 31.3, "peak_memory": 812_000_000},
        },
        "valid": {
            **{"nll_per_sentence": 36.2, "nll_per_word": 1.61, "perplexity": 5.0},
            **{"bleu": 27.2, "update": 4000},
        },
    }
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")
    return folder


def _test_set(
    folder: Path,
    name: str,
    rows: list[dict],
    draw: np.random.Generator,
    attention: bool,
    cap: int,
    kept: int,
) -> pd.DataFrame:
    (folder / "translations").mkdir(exist_ok=True)
    (folder / "alignments").mkdir(exist_ok=True)
    lengths = np.array([len(row["source"]) for row in rows])
    chosen = set(
        np.argsort(lengths, kind="stable")[
            np.linspace(0, len(rows) - 1, min(kept, len(rows))).astype(int)
        ]
    )
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
        translations.append(record)
        if number in chosen:
            alignments.append(_alignment(record, order, draw, attention))
    _write_lines(folder / "translations" / f"{name}.jsonl", translations)
    _write_lines(folder / "alignments" / f"{name}.jsonl", alignments)
    return pd.DataFrame(_score_rows(translations)).assign(set=name, interval="sentences")


def _score_rows(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of scores.csv: BLEU by sacrebleu from the integer statistics, other scores made up."""
    lengths = np.array([record["length"] for record in records])
    buckets = zip((1, *(edge + 1 for edge in EDGES)), (*EDGES, None), strict=True)
    parts: list[tuple[Any, Any, np.ndarray]] = [(None, None, lengths > 0)]
    parts += [(a, b, (lengths >= a) & (lengths <= (b or 10**6))) for a, b in buckets]
    found = []
    for low, high, inside in parts:
        some = [record for record, chosen in zip(records, inside, strict=True) if chosen]
        if not some:
            continue
        where = {"from": low, "to": high}
        for subset, key in (("all", "bleu_stats"), ("no_unk", "bleu_stats_no_unk")):
            statistics = np.array([record[key] for record in some if key in record])
            if len(statistics):
                value = bleu(statistics)
                ends = {"low": max(0.0, value - 0.7), "high": min(100.0, value + 0.8)}
                row = {"subset": subset, "score": "bleu", "value": value, **ends}
                found.append(where | row | {"sentences": len(statistics)})
        words = sum(len(record["reference"]) + 1 for record in some)
        others = {"nll_per_word": sum(record["nll"] for record in some) / words, "chrf": 40.0}
        if "alignment_counts" in some[0]:
            others |= {"attention_entropy": 0.4, "alignment_error_rate": 0.1}
        for score, value in others.items():
            row = {"subset": "all", "score": score, "value": value, "low": None, "high": None}
            found.append(where | row | {"sentences": len(some)})
    return found


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
