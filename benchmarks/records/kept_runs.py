"""The runs of a study without their text, in docs/results/runs: its claims can be decided again from them.

What is kept of a sentence is its number, its length and the statistics that scores are made of; of a
run besides its results and its configuration, without what says where it was made. A run is a file of
its own, `docs/results/runs/STUDY/FOLDER.tar.xz`; the claims as they were hashed lie beside them.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.records.rows import is_place
from nmt.config.keys import is_within
from nmt.config.schema import RUNTIME_KEYS
from nmt.evaluation.records import Record
from nmt.evaluation.results import FILE
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores, score_of_name
from nmt.report.disambiguation import text_digest
from nmt.report.finding import read_run
from nmt.report.runs import FinishedRun
from nmt.studies.existing import RUNS
from nmt.studies.planned import identity
from nmt.studies.registration import FILE as CLAIMS
from nmt.utils.files import CHECKSUM, write_atomically

PACKED = ".tar.xz"
OVERRIDES = ".hydra/overrides.yaml"  # what a study counts its runs by
LIST = Path("checkpoints") / f"best.ckpt{CHECKSUM}"  # tells one trained model from another
SOURCE = ("sha256", "device", "devices", "precision")
NUMBERS = ("id", "length", "no_unk", "unknown_words")
NO_TEXT = {"source": [], "reference": [], "hypothesis": [], "detokenised": "", "without_text": True}
PLACE = re.compile(r"(?:^|[\s=\[,'\"])(?:~|\.\.?)?/|://")


def keep_runs(folder: Path, kept: Path) -> list[Path]:
    """Packs the runs of a study that are its own; what is kept of others is removed.

    Args:
        folder: of the study, decided.
        kept: what holds the packed runs of this study.

    Returns:
        The files of the runs.
    """
    study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    scores = [score_of_name(claim["claim"]["score"], claim["name"]) for claim in study["claims"]]
    own = (folder / RUNS).resolve()
    runs = {Path(entry["folder"]).resolve() for entry in study["runs"] if entry["folder"]}
    content = {
        kept / f"{run.name}{PACKED}": packed(read_run(run), scores)
        for run in sorted(runs)
        if run.parent == own
    }
    claims = _registrations(folder)
    if _registrations(kept) != claims[: len(_registrations(kept))]:
        raise SystemExit(f"{folder / CLAIMS}: does not go on from the claims in {kept}")
    refuse_places(claims, str(folder / CLAIMS))
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / CLAIMS, kept / CLAIMS)
    for path in kept.glob(f"*{PACKED}"):
        if path not in content:
            path.unlink()
    for path, packed_run in content.items():
        if not path.is_file() or path.read_bytes() != packed_run:
            write_atomically(path, partial(shutil.copyfileobj, io.BytesIO(packed_run)))
    return list(content)


def unpack_runs(kept: Path, folder: Path) -> list[Path]:
    """Puts the runs that are kept into a study's folder, as far as it does not have them.

    Returns:
        The folders of the runs that were put there.
    """
    claims, there = _registrations(kept), _registrations(folder)
    if not claims:
        return []
    if there and there[: len(claims)] != claims:
        raise SystemExit(
            f"{folder}: holds other claims than the runs in {kept} were made for; name another folder"
        )
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    if not there:
        shutil.copyfile(kept / CLAIMS, folder / CLAIMS)
    put = []
    for path in sorted(kept.glob(f"*{PACKED}")):
        run = folder / RUNS / path.name.removesuffix(PACKED)
        if run.exists():
            continue
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            whole = Path(beside, run.name)
            try:
                with tarfile.open(path) as archive:
                    archive.extractall(whole, filter="data")
            except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
                raise SystemExit(f"{path}: damaged ({error})") from error
            whole.rename(run)
        put.append(run)
    return put


def _registrations(folder: Path) -> list[Any]:
    """What a folder's file of claims holds; nothing without one."""
    path = folder / CLAIMS
    found: list[Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return found


def packed(run: FinishedRun, scores: Iterable[Score] = ()) -> bytes:
    """A finished run without text and places: the same run gives the same bytes.

    Args:
        run: as it lies on disk.
        scores: whose statistics are kept besides those that the run has.
    """
    assert run.folder is not None
    config = without_places(run.config)
    if "sources" not in run.results and identity(run.config) != identity(config):
        raise SystemExit(f"{run.folder}: names files, without which it would not be known again")
    overrides = [word for word in run.overrides if not is_place(word)]
    results = {
        **run.results,
        "config": config,
        "overrides": overrides,
        "command": "",
        "without_text": {name: text_digest(run, name) for name in run.sets},
    }
    if sources := results.get("sources"):
        results["sources"] = without_files(sources)
    refuse_places(results, str(run.folder))
    files = {OVERRIDES: _json(overrides)}  # which is YAML, too
    wanted = measured_by(run, scores)
    for name in run.sets:
        rows = [without_text(row, wanted) for row in run.translations(name)]
        files[f"translations/{name}.jsonl"] = "".join(f"{_json(row)}\n" for row in rows)
    if (run.folder / LIST).is_file():
        files[str(LIST)] = (run.folder / LIST).read_text(encoding="utf-8")
    files[FILE] = _json(results)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(name)  # without time and owner
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(stream.getvalue(), preset=9)


def measured_by(run: FinishedRun, scores: Iterable[Score] = ()) -> list[Score]:
    """The scores whose statistics are kept: those named, those of the run, and those that take no time."""
    chosen = choose_scores((run.config.get("evaluation") or {}).get("scores"))
    quick = [score for score in REGISTERED.values() if not score.slow]
    return list({score.key: score for score in [*scores, *chosen, *quick, NO_UNK]}.values())


def without_text(row: Record, scores: Iterable[Score]) -> Record:
    """A record with the statistics of these scores and no word of its sentence."""
    statistics = {}
    for score in scores:
        stored = (row.get("statistics") or {}).get(score.key)
        found = score.checked(row) if stored is None else stored
        if found is not None and not any(map(math.isnan, found)):
            statistics[score.key] = found
    return {key: row[key] for key in NUMBERS if key in row} | NO_TEXT | {"statistics": statistics}


def without_places(config: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """A configuration without the keys that say where a run is made, and with files by their names.

    >>> without_places({"data": {"root": "/a", "train": {"source": "/a/b.en"}}, "trainer": {"devices": 2}})
    {'data': {'train': {'source': 'b.en'}}, 'trainer': {}}
    """
    found: dict[str, Any] = {}
    for name, value in config.items():
        if is_within(f"{section}{name}", RUNTIME_KEYS):
            continue
        if isinstance(value, Mapping):
            value = without_places(value, f"{section}{name}.")
        elif isinstance(value, str) and value.startswith("/"):
            value = Path(value).name
        found[name] = value
    return found


def without_files(sources: Mapping[str, Any]) -> dict[str, Any]:
    """The models that were evaluated by their content alone."""
    found = {key: sources[key] for key in SOURCE if key in sources}
    others = [without_files(each) for each in sources.get("others", [])]
    return found | ({"others": others} if others else {})


def refuse_places(content: Any, where: str) -> None:
    """Ends the program where something that is to be kept names a place of this machine or another."""
    for text in strings(content):
        if PLACE.search(text):
            raise SystemExit(f"{where}: cannot be kept, since it names a place: {text:.80}")


def strings(value: Any) -> Iterator[str]:
    """The strings in plain data that are not empty, keys of mappings left out."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from strings(inner)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
