"""How each compared toolkit does a piece of work, with its model that is most similar to RNNsearch.

`own_order` is the order of a toolkit's own batches. `train` measures the seconds of an update, `search`
those of a search whose outputs are as long as the sources: CPU time for one thread, else wall-clock time.
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
REPEATS = 3  # updates on one batch to measure Marian's time


class JoeyNMT:
    """JoeyNMT in its own process, which answers each piece of work with its seconds."""

    version, own_order = JOEYNMT, "mixed"

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
        return self.ask({"train": [sentences(*words[:2]), sentences(*words[2:])]})

    def search(self, words: Words, beam: int) -> float:
        source = sentences(*words[:2])
        return self.ask({"search": source, "steps": len(source[0]), "beam": beam})


class Marian:
    """Marian's program, started for each piece of work: the time of several updates minus one."""

    version, own_order = MARIAN, "sorted"

    def __init__(self, size: Size, threads: int) -> None:
        self.program = install_marian()
        self.threads = threads
        self.size = size
        self.folder = Path(tempfile.mkdtemp(prefix="marian-"))
        words = "".join(f"w{word}: {word}\n" for word in range(2, size.vocabulary))
        (self.folder / "vocabulary.yml").write_text(f"</s>: 0\n<unk>: 1\n{words}")

    def run(self, command: str, **options: object) -> float:
        """Measures the seconds of a command; the option `a_b` becomes `--a-b`."""
        common = {
            "vocabs": "vocabulary.yml vocabulary.yml", "cpu_threads": self.threads,
            "maxi_batch": 1, "workspace": 1000,
        }  # fmt: skip
        typed = [str(self.program), command, "--quiet"]
        for name, value in {**common, **options}.items():
            typed += [f"--{name.replace('_', '-')}", *str(value).split()]
        used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(typed, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
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
        self.updates(words, 1, rate=1e-12)  # an untrained model does not end its sentences early
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


TOOLKITS: dict[str, type[JoeyNMT | Marian]] = {"joeynmt": JoeyNMT, "marian": Marian}


def sentences(words: Any, mask: Any) -> list[list[int]]:
    """Returns the ids of each sentence of a batch, without padding."""
    return [row[: int(real.sum())].tolist() for row, real in zip(words, mask, strict=True)]
