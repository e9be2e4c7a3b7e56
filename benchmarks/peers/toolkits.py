"""Runs each toolkit with the model that is most similar to RNNsearch.

Each toolkit is a class. Its `own_order` is the order, `mixed` or `sorted`, in which the toolkit batches sentences
by default. `train` returns the seconds of an update, and `search` the seconds of a search whose outputs are as
long as the sources. Both measure CPU time with one thread, and wall-clock time with more. `multiply_adds` counts
the multiply-adds in the matrix products of an update, or of a search if a beam is given.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import JOEYNMT, MARIAN, install_joeynmt, install_marian
from benchmarks.work import Size, Words

WORKER = Path(__file__).with_name("joeynmt_worker.py")
REPEATS = 3  # Marian's time is averaged over this number of updates or searches


class JoeyNMT:
    """Runs JoeyNMT in another process, which measures each update or search."""

    version = JOEYNMT
    own_order = "mixed"

    def __init__(self, size: Size, threads: int) -> None:
        self.process = subprocess.Popen(
            [install_joeynmt(), WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask({"vocabulary": size.vocabulary, "threads": threads})

    def ask(self, work: dict[str, Any]) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(work), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def train(self, words: Words) -> float:
        return self.ask(request(words))

    def search(self, words: Words, beam: int) -> float:
        return self.ask(request(words, beam))

    def multiply_adds(self, words: Words, beam: int | None = None) -> float:
        return self.ask({"count": True} | request(words, beam))


class Marian:
    """Starts Marian's program for each measurement.

    The time of one update or search is subtracted from the time of 1 + `REPEATS` of them, to exclude the start-up.
    """

    version = MARIAN
    own_order = "sorted"

    def __init__(self, size: Size, threads: int) -> None:
        self.program = install_marian()
        self.threads = threads
        self.size = size
        self.folder = Path(tempfile.mkdtemp(prefix="marian-"))
        words = "".join(f"w{word}: {word}\n" for word in range(2, size.vocabulary))
        (self.folder / "vocabulary.yml").write_text(f"</s>: 0\n<unk>: 1\n{words}")

    def run(self, command: str, **options: object) -> float:
        """Returns the seconds that a command takes; the option `a_b` becomes `--a-b`."""
        common = {
            "vocabs": "vocabulary.yml vocabulary.yml", "cpu_threads": self.threads,
            "maxi_batch": 1, "workspace": 1000,
        }  # fmt: skip
        arguments = [str(self.program), command, "--quiet"]
        for name, value in {**common, **options}.items():
            arguments += [f"--{name.replace('_', '-')}", *str(value).split()]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(arguments, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        return processor if self.threads == 1 else wall

    def updates(self, words: Words, count: int, rate: float = 1e-3) -> float:
        for name, side in (("source", words[:2]), ("target", words[2:])):
            lines = [" ".join(f"w{w}" for w in row[:-1]) for row in sentences(*side)]
            (self.folder / name).write_text("".join(f"{line}\n" for line in lines * count))
        (self.folder / "model.npz").unlink(missing_ok=True)
        return self.run(
            "train", type="s2s", train_sets="source target", model="model.npz", after=f"{count}u",
            dim_vocabs=f"{self.size.vocabulary} {self.size.vocabulary}", dim_emb=self.size.embedding,
            dim_rnn=self.size.hidden, mini_batch=len(words[0]), max_length=100, shuffle="none",
            optimizer="adam", learn_rate=rate, clip_norm=1, dropout_rnn=0,
        )  # fmt: skip

    def train(self, words: Words) -> float:
        return (self.updates(words, 1 + REPEATS) - self.updates(words, 1)) / REPEATS

    def search(self, words: Words, beam: int) -> float:
        # Make a nearly untrained model: its outputs do not end before the maximum length.
        self.updates(words, 1, rate=1e-12)
        times = []
        for repeats in (1, 1 + REPEATS):
            lines = (self.folder / "source").read_text() * repeats
            (self.folder / "input").write_text(lines)
            times.append(
                self.run(
                    "decode", models="model.npz", input="input", output="output", beam_size=beam,
                    mini_batch=len(words[0]), max_length_factor=1,
                )
            )  # fmt: skip
        return (times[1] - times[0]) / REPEATS

    def multiply_adds(self, words: Words, beam: int | None = None) -> float:
        """Computes the multiply-adds from the layers of `--type s2s`, since Marian does not count them."""
        n, e = self.size.hidden, self.size.embedding
        source = words[0].numel()
        target = words[2].numel()
        encoder = 2 * 3 * n * (e + n) + 2 * n * 2 * n  # per source word: two GRUs, attention keys
        units = 3 * n * (e + n) + 3 * n * (2 * n + n)  # per target word: two GRUs
        attention = n * 2 * n + 2 * words[0].shape[1] * 2 * n
        output = (e + n + 2 * n) * e + e * self.size.vocabulary
        forward = source * encoder + target * (beam or 1) * (units + attention + output)
        return forward if beam else 3 * forward  # each forward product has two backward products


TOOLKITS: dict[str, type[JoeyNMT | Marian]] = {"joeynmt": JoeyNMT, "marian": Marian}


def request(words: Words, beam: int | None = None) -> dict[str, Any]:
    """Returns a request for JoeyNMT's process: a search if a beam is given, otherwise an update."""
    source = sentences(*words[:2])
    if beam is None:
        return {"train": [source, sentences(*words[2:])]}
    return {"search": source, "steps": len(source[0]), "beam": beam}


def sentences(words: Any, mask: Any) -> list[list[int]]:
    """Returns the ids of the sentences of a batch, without padding."""
    return [row[: int(real.sum())].tolist() for row, real in zip(words, mask, strict=True)]
