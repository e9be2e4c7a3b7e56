"""The runs of a record without their text, in docs/results/runs: verdicts can be decided again from them.

Of a text that may not be passed on nothing is kept but what scores are made of: the numbers of each
sentence, in records of `nmt.evaluation.records` whose tokens are left out. A run is a file of its
own, `docs/results/runs/TEXT/FOLDER.tar.xz`; the claims as they were hashed lie beside them.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.records.rows import is_place
from nmt.evaluation.records import Record
from nmt.evaluation.results import FILE
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.report.finding import read_run
from nmt.report.runs import FinishedRun
from nmt.studies.existing import RUNS
from nmt.studies.registration import FILE as CLAIMS
from nmt.utils.errors import InputError
from nmt.utils.files import CHECKSUM

PACKED = ".tar.xz"
OVERRIDES = ".hydra/overrides.yaml"  # what a study knows its runs by
LIST = Path("checkpoints") / f"best.ckpt{CHECKSUM}"  # tells one trained model from another
WITHOUT_TEXT = {"source": [], "reference": [], "hypothesis": [], "detokenised": ""}
DROPPED = ("raw_reference", "hypothesis_no_unk", "attention_mass", "score")


def keep_runs(folder: Path, kept: Path) -> list[Path]:
    """Packs the finished runs of a study's folder that are not packed yet.

    Args:
        folder: of the study.
        kept: what holds the packed runs of this study.

    Returns:
        The files written.
    """
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / CLAIMS, kept / CLAIMS)
    written = []
    for results in sorted((folder / RUNS).glob(f"*/{FILE}")):
        path = kept / f"{results.parent.name}{PACKED}"
        if not path.exists():
            path.write_bytes(packed(read_run(results.parent)))
            written.append(path)
    return written


def unpack_runs(kept: Path, folder: Path) -> list[Path]:
    """Puts the runs that are kept into a study's folder, as far as it does not have them.

    Returns:
        The folders of the runs that were put there.
    """
    if not (kept / CLAIMS).is_file():
        return []
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    if not (folder / CLAIMS).exists():
        shutil.copyfile(kept / CLAIMS, folder / CLAIMS)
    put = []
    for path in sorted(kept.glob(f"*{PACKED}")):
        run = folder / RUNS / path.name.removesuffix(PACKED)
        if not run.exists():
            with tarfile.open(path) as archive:
                archive.extractall(run, filter="data")
            put.append(run)
    return put


def packed(run: FinishedRun) -> bytes:
    """A finished run without text and paths: the same run gives the same bytes."""
    assert run.folder is not None
    scores = measured_by(run)
    overrides = [word for word in run.overrides if not is_place(word)]
    files = {
        FILE: _json(without_paths({**run.results, "overrides": overrides, "command": ""})),
        OVERRIDES: _json(overrides),  # which is YAML, too
    }
    for name in run.sets:
        rows = [without_text(row, scores) for row in run.translations(name)]
        files[f"translations/{name}.jsonl"] = "".join(f"{_json(row)}\n" for row in rows)
    if (run.folder / LIST).is_file():
        files[str(LIST)] = (run.folder / LIST).read_text(encoding="utf-8")
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(name)  # without time and owner
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(stream.getvalue(), preset=9)


def measured_by(run: FinishedRun) -> list[Score]:
    """The scores whose statistics are kept: those that the run has, and those that take no time."""
    chosen = choose_scores((run.config.get("evaluation") or {}).get("scores"))
    quick = [score for score in REGISTERED.values() if not score.slow]
    return list({score.key: score for score in [*chosen, *quick, NO_UNK]}.values())


def without_text(row: Record, scores: Iterable[Score]) -> Record:
    """A record that gives the same scores and has no word of its sentence."""
    bare = {key: value for key, value in row.items() if key not in DROPPED} | WITHOUT_TEXT
    statistics = dict(row.get("statistics") or {})
    for score in scores:
        if score.key not in statistics:
            found = score.checked(row)
            if found is not None and found != _statistics(score, bare):
                statistics[score.key] = found
    return bare | ({"statistics": statistics} if statistics else {})


def _statistics(score: Score, row: Record) -> list[float] | None:
    try:
        return score.checked(row)
    except InputError:  # it is made of the text
        return None


def without_paths(value: Any) -> Any:
    """The same content with names in place of absolute paths.

    >>> without_paths({"root": "/a/b", "files": ["/a/train"], "title": "a/b"})
    {'root': 'b', 'files': ['train'], 'title': 'a/b'}
    """
    if isinstance(value, Mapping):
        return {key: without_paths(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [without_paths(inner) for inner in value]
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
