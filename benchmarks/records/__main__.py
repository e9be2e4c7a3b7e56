"""Makes the runs of a text's tables, as far as they are missing, and writes docs/results/ and the
tables and figures of docs/results.md and docs/paper.md.

    python -m benchmarks.records multi30k study.root=FOLDER
    python -m benchmarks.records multi30k study.root=FOLDER study.take=[runs] study.missing=leave
    python -m benchmarks.records                   # tables and figures alone, from docs/results/

The runs are those of the study of this name (`nmt.study`), to which what is typed is passed on; its
study.md is kept beside the record where some claim has a figure. `--keep-runs` keeps the study's own
runs, too, without their text (docs/results/runs): they are there for whoever types the command next.
The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.records.figures import draw_figures
from benchmarks.records.kept_runs import keep_runs, unpack_runs
from benchmarks.records.rows import record, write_record
from benchmarks.records.tables import PAGES, RECORDS, read_records, with_tables
from nmt.cli.composition import conf_folder
from nmt.utils.code import PACKAGE
from nmt.utils.devices import processor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    texts = sorted(file.stem for file in (conf_folder() / "study").glob("*.yaml"))
    parser.add_argument("text", nargs="?", choices=texts)
    parser.add_argument(
        "typed", nargs="*", metavar="study.KEY=VALUE", help="passed on to nmt.study"
    )
    parser.add_argument(
        "--folder", type=Path, help="of the study; studies/TEXT where none is given"
    )
    parser.add_argument(
        "--made-here",
        metavar="COMMIT",
        help="runs that do not say so were made here, by this commit",
    )
    parser.add_argument(
        "--keep-runs", action="store_true", help="in docs/results/runs, without their text"
    )
    parser.add_argument(
        "--fewer", action="store_true", help="even if the record loses runs or decided claims"
    )
    args = parser.parse_args()
    if args.text:
        folder = args.folder or Path("studies") / args.text
        kept = RECORDS / "runs" / args.text
        unpack_runs(kept, folder)
        typed = [f"+study={args.text}", f"hydra.run.dir={folder}", *args.typed]
        done = subprocess.run([sys.executable, "-m", "nmt.study", *typed], check=False)
        if done.returncode:  # it has said why
            raise SystemExit(done.returncode)
        if "study.plan_only=true" in map(str.lower, args.typed):
            return
        study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        content = record(args.text, study, said_of_earlier(args.made_here))
        refuse_other_commits(content, args.made_here)
        path = RECORDS / f"{args.text}.json"
        if path.is_file() and not args.fewer:
            refuse_to_lose(json.loads(path.read_text(encoding="utf-8")), content)
        if args.keep_runs:
            keep_runs(folder, kept)
        write_record(path, content)
        verdicts = RECORDS / f"{args.text}.md"
        if content["claims"]:
            shutil.copyfile(folder / "study.md", verdicts)
        else:
            verdicts.unlink(missing_ok=True)
    records = read_records()
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8"), records), encoding="utf-8")
        draw_figures(page, records)


def said_of_earlier(commit: str | None) -> dict[str, Any]:
    """What `--made-here` says of runs whose results.json does not."""
    return {} if commit is None else {"commit": commit, "processor": processor()}


def refuse_other_commits(content: dict[str, Any], commit: str | None) -> None:
    """Ends the program where a run that is said to be of a commit has other code than that has."""
    if commit is None:
        return
    code = code_of(commit)
    for row in content["rows"]:
        for run in row["runs"]:
            if run["commit"] == commit and run["code"] != code:
                raise SystemExit(
                    f"{row['name']}, seed {run['seed']}: not made by the code of {commit}"
                )


def refuse_to_lose(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Ends the program where a record would lose runs or decided claims: they lie elsewhere."""
    lost = sorted(held_by(before) - held_by(after))
    if lost:
        raise SystemExit(
            f"the record of {before['text']} would lose {', '.join(lost)}; name the folders of the "
            "runs (study.take), or type --fewer"
        )


def held_by(content: dict[str, Any]) -> set[str]:
    """The runs and decided claims of a record."""
    runs = {f"{row['group']} seed {run['seed']}" for row in content["rows"] for run in row["runs"]}
    return runs | {f"claim {claim['name']}" for claim in content["claims"]}


def code_of(commit: str) -> str:
    """The fingerprint of the code of a commit, as that commit computes it."""
    packed = subprocess.run(
        ["git", "-C", PACKAGE.parent, "archive", commit, PACKAGE.name],
        check=True,
        capture_output=True,
    ).stdout
    ask = "from nmt.utils.code import code_fingerprint; print(code_fingerprint())"
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        told = subprocess.run(
            [sys.executable, "-c", ask],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            check=True,
            capture_output=True,
            text=True,
        )
    return told.stdout.strip()


if __name__ == "__main__":
    main()
