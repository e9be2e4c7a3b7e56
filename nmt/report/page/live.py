"""Chooses the models that a page holds, and the bits of their weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from nmt.config import PageConfig
from nmt.data.tokenise import tokeniser
from nmt.report.live_file import FILE, LiveModel, read_live
from nmt.report.page import embed
from nmt.report.page.payload import spread
from nmt.report.runs import FinishedRun, grouped

LIMIT = 12_000_000
"""Bytes that all models of a page take at most with `report.live=auto`."""

OFFERED = 80
"""Sentences of the test sets that a person can take."""

_KNOWN = {
    *("RNNencdec", "RNNsearch", "BidirectionalEncoder", "ForwardEncoder", "GatedUnit", "Attention"),
    *("Additive", "Dot", "ScaledDot"),
}
_LEVEL = 6  # of deflate: 9 takes twice as long for a thousandth


class LiveModels(NamedTuple):
    """What a page holds of its models.

    Attributes:
        payloads: packed program of the worker and weights of each model, by id of their element.
        about: descriptions of the models and sentences to begin with; None without models.
        left_out: why the models of other runs are not there, by label.
    """

    payloads: dict[str, str]
    about: dict[str, Any] | None
    left_out: dict[str, str]


def fitted_models(runs: Sequence[FinishedRun], report: PageConfig) -> LiveModels:
    """The models of a page: one run a group, as many as fit.

    With `report.live=auto` models with and without attention alternate, those with the largest
    `max_length` first, as long as all together are within LIMIT.

    Raises:
        InputError: for a `live.npz` that is damaged, naming it.
    """
    if report.live is False:
        return LiveModels({}, None, {})
    groups = [members for members in grouped(runs).values() if not members[0].external]
    candidates = [next(filter(_has_model, members), members[0]) for members in groups]
    payloads: dict[str, str] = {}
    described: list[dict[str, Any]] = []
    room = LIMIT if report.live == "auto" else None
    left_out = {run.label: missing_because(run, room) for run in candidates if not _has_model(run)}
    for run in _alternating(filter(_has_model, candidates)):
        assert run.folder is not None
        model = read_live(run.folder)
        assert model is not None
        payload = embed.packed(packed_weights(model, report.live_bits), _LEVEL)
        if room is not None and len(payload) > room:
            left_out[run.label] = _too_large(model.parameters)
            continue
        room = None if room is None else room - len(payload)
        payloads[f"live-{len(described)}"] = payload
        described.append({"label": run.label, **model.about, "rules": _rules(model)})
    if not described:
        return LiveModels({}, None, left_out)
    about = {
        "bits": report.live_bits,
        "models": described,
        "sentences": offered_sentences(runs, described[0]["languages"][0]),
    }
    payloads["live-program"] = embed.packed(embed.program("inference/worker.mjs"))
    return LiveModels(payloads, about, left_out)


def offered_sentences(runs: Sequence[FinishedRun], language: str) -> list[dict[str, Any]]:
    """Source sentences of the test sets to begin with, as text, spread over their lengths."""
    rows = {
        tuple(row["source"]) for run in runs for name in run.sets for row in run.translations(name)
    }
    ascending = sorted(rows, key=lambda words: (len(words), words))
    chosen = spread(ascending, min(OFFERED, len(ascending)))
    moses = tokeniser(language)
    return [{"words": len(words), "text": moses.detokenise(words)} for words in chosen if words]


def missing_because(run: FinishedRun, room: int | None) -> str:
    """Why the folder of a run holds no model for pages, in a line.

    Args:
        room: bytes that a page has for models; None: any number.
    """
    for part in ("", "encoder.", "unit.", "attention.", "scoring."):
        name = str(run.flat.get(f"model.{part}_target_") or "").rpartition(".")[2]
        if name and name not in _KNOWN:
            return f"the page does not know {name}"
    parameters = _number(run, "parameters")
    if room is not None and fewest_bytes(parameters) > room:
        return _too_large(parameters)
    return "its folder holds no live.npz (report.live when it was trained or evaluated)"


def fewest_bytes(parameters: int) -> int:
    """About the bytes that a model takes in a page with 8 bits, in base64."""
    return parameters * 4 // 3


def _too_large(parameters: int) -> str:
    return (
        f"its {parameters / 1e6:.1f} million parameters do not fit any more "
        f"(all models together: {LIMIT // 10**6} MB; report.live_bits=8 halves them, "
        "report.live=true takes all)"
    )


def _has_model(run: FinishedRun) -> bool:
    return run.folder is not None and (run.folder / FILE).is_file()


def _alternating(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    """With attention, without, with, …; of each kind those with the largest `max_length` first."""
    kinds: dict[bool, list[FinishedRun]] = {True: [], False: []}
    for run in runs:
        kinds["model.scoring._target_" in run.flat].append(run)
    for alike in kinds.values():
        alike.sort(key=lambda run: -_number(run, "max_length"))
    return [run for turn in zip_longest(*kinds.values()) for run in turn if run is not None]


def _number(run: FinishedRun, key: str) -> int:
    """A number of results.json; 0 where it is none."""
    value = run.results.get(key)
    return value if isinstance(value, int) else 0


def _rules(model: LiveModel) -> dict[str, Any]:
    """How Moses tokenises the source language and detokenises the target language."""
    characters = model.about.get("characters", False)
    source, target = (
        tokeniser(each, characters=characters).rules() for each in model.about["languages"]
    )
    for name in ("plain_alpha", "currency"):
        del source[name]
    return {
        "source": source,
        "target": {k: target[k] for k in ("language", "plain_alpha", "currency", "unspaced")},
    }


def packed_weights(model: LiveModel, bits: int) -> bytes:
    """The weights of a model as `js/models/weights.mjs` reads them.

    16 bits: the lower byte of every number, then the higher byte of every number, which deflate takes
    for what it is. 8 bits: a signed byte for every entry of the matrices; then, as numbers of 16 bits,
    tensor by tensor the scale of every row of a matrix, and the vectors whole.
    """
    if bits == 16:
        return _planes(np.concatenate([each.ravel() for each in model.weights.values()]))
    codes, halves = [], []
    for weight in model.weights.values():
        if weight.ndim == 1:
            halves.append(weight)
            continue
        code, scale = rounded_to_8_bits(weight)
        codes.append(code.ravel())
        halves.append(scale)
    return b"".join([np.concatenate(codes).tobytes(), _planes(np.concatenate(halves))])


def rounded_to_8_bits(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix (m, n) as int8 codes (m, n) and a float16 scale a row (m,): code * scale is nearest."""
    wide = matrix.astype(np.float64)
    # the scale is rounded up, so that no code is beyond 127
    scale = np.nextafter((np.abs(wide).max(1) / 127).astype(np.float16), np.float16(np.inf))
    scale = np.where(np.abs(wide).max(1) > 0, scale, np.float16(0))
    divisor = np.where(scale > 0, scale.astype(np.float64), 1.0)[:, None]
    return np.clip(np.rint(wide / divisor), -127, 127).astype(np.int8), scale.astype(np.float16)


def _planes(numbers: np.ndarray) -> bytes:
    return numbers.astype("<f2").view(np.uint8).reshape(-1, 2).T.tobytes()
