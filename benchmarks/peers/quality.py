"""Compares the BLEU of JoeyNMT, Marian and `nmt` after equal CPU time of training.

    python -m benchmarks.peers.quality FOLDER --minutes 20

FOLDER contains Multi30k: `train`, `val` and `test2016`, as `.en` and `.fr`. All systems train on the same
tokens, in batches of 80, with one thread, Adam and dropout. `nmt` has the learning rate of `regime=laptop`,
the toolkits have 1e-3. The vocabularies are equally large, and the models have the sizes of
`benchmarks.work`. The operating system ends the training after the given CPU time, which includes
validation. The best model on the development set then translates test2016 with a beam of 12.
Prints one line of JSON per system: BLEU on tokens, its brevity penalty, and the number of updates.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from sacrebleu.metrics import BLEU

from benchmarks.peers.environment import install_joeynmt, install_marian
from benchmarks.work import BATCH, SIZES, print_line
from nmt.text.lines import read_lines
from nmt.text.tokenise import Tokeniser

SIZE = SIZES["laptop"]
VALIDATE_EVERY = 100  # updates
DROPOUT, RATE, CLIP, BEAM = 0.2, 1e-3, 1.0, 12
MOST_UPDATES = 1_000_000  # never reached, since the limit of CPU time ends the training


class Task(NamedTuple):
    """The folder in which a system is trained, and the CPU time of its training."""

    folder: Path  # contains the tokenised text; the commands run in this folder
    seconds: int  # CPU time for training

    def train(self, command: Sequence[object], name: str) -> str:
        """Runs a training command until its CPU time is used up; returns its output."""

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 5))

        done = self.run(command, name, preexec_fn=limit)
        if done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL):
            raise RuntimeError(f"{name}: training ended too early: see {name}.log")
        return (self.folder / f"{name}.log").read_text()

    def translate(self, command: Sequence[object], name: str) -> list[str]:
        """Translates the source of test2016 with a command; returns the lines that it prints."""
        with (self.folder / "test2016.en").open() as source:
            done = self.run(command, name, stdin=source, stdout=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(f"{name}: translation failed: see {name}.log")
        return str(done.stdout).splitlines()

    def run(
        self, command: Sequence[object], name: str, **options: object
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
        with (self.folder / f"{name}.log").open("a") as log:
            given = {
                "stdout": log,
                "stderr": log,
                "cwd": self.folder,
                "env": environment,
                **options,
            }
            return subprocess.run(list(map(str, command)), text=True, **given)  # type: ignore[call-overload]


def train_nmt(task: Task) -> tuple[list[str], int]:
    """Trains `nmt` with `regime=laptop`; returns translations and the number of updates."""
    text = [
        f"{key}.{side}={name}.{language}"
        for key, name in (
            ("data.train", "train"),
            ("data.valid", "val"),
            ("+data.test.test2016", "test2016"),
        )
        for side, language in (("source", "en"), ("target", "fr"))
    ]
    text += ["data.train.tokenised=true", "data.valid.tokenised=true"]
    printed = task.train(
        [
            sys.executable, "-m", "nmt.train", "+experiment=rnnsearch50", "data=text", *text,
            "+data.test.test2016.tokenised=true", "tokenizer.source_size=6500",
            "tokenizer.target_size=6500", f"model.dropout={DROPOUT}", f"trainer.max_steps={MOST_UPDATES}",
            f"trainer.val_check_interval={VALIDATE_EVERY}", "threads=1", "logger=none",
            "hydra.run.dir=nmt",
        ],
        "nmt",
    )  # fmt: skip
    command = [
        sys.executable, "-m", "nmt.translate", "checkpoint=nmt/checkpoints/best.ckpt",
        "tokenised=true", "detokenise=false", f"search.beam_size={BEAM}", "threads=1",
    ]  # fmt: skip
    return task.translate(command, "nmt"), last_number(r"update ([\d,]+) of", printed)


def train_joeynmt(task: Task) -> tuple[list[str], int]:
    """Trains JoeyNMT; returns translations and the number of updates."""
    python = install_joeynmt()
    side = {"level": "word", "voc_limit": SIZE.vocabulary, "lowercase": False, "max_length": 50}
    network = {
        "type": "recurrent", "rnn_type": "gru", "hidden_size": SIZE.hidden, "num_layers": 1,
        "embeddings": {"embedding_dim": SIZE.embedding, "dropout": DROPOUT}, "dropout": DROPOUT,
    }  # fmt: skip
    decoder = {"attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True}
    settings = {
        "name": "joeynmt", "model_dir": "joeynmt", "use_cuda": False, "random_seed": 1,
        "data": {
            "train": "train", "dev": "val", "test": "test2016", "dataset_type": "plain",
            "src": {"lang": "en", **side}, "trg": {"lang": "fr", **side},
        },
        "training": {
            "optimizer": "adam", "learning_rate": RATE, "clip_grad_norm": CLIP, "batch_size": BATCH,
            "batch_type": "sentence", "epochs": 1000, "updates": MOST_UPDATES, "overwrite": True,
            "validation_freq": VALIDATE_EVERY, "logging_freq": 10, "early_stopping_metric": "ppl",
            "loss": "crossentropy", "scheduling": "exponential", "decrease_factor": 1.0,
            "normalization": "batch", "keep_best_ckpts": 1,
            "print_valid_sents": [],
        },
        "testing": {
            "beam_size": BEAM, "beam_alpha": -1, "batch_size": 16, "batch_type": "sentence",
            "eval_metrics": [], "max_output_length": 100,
        },
        "model": {"encoder": {**network, "bidirectional": True}, "decoder": {**network, **decoder}},
    }  # fmt: skip
    for name, beam in (("joeynmt", 1), ("joeynmt-test", BEAM)):
        settings["testing"]["beam_size"] = beam  # type: ignore[index]
        (task.folder / f"{name}.yaml").write_text(yaml.safe_dump(settings))
    printed = task.train([python, "-m", "joeynmt", "train", "joeynmt.yaml", "-t"], "joeynmt")
    command = [python, "-m", "joeynmt", "translate", "joeynmt-test.yaml"]
    return task.translate(command, "joeynmt"), last_number(r"Step: +(\d+)", printed)


def train_marian(task: Task) -> tuple[list[str], int]:
    """Trains Marian; returns translations and the number of updates."""
    program = install_marian()
    common = ["--cpu-threads", 1, "--vocabs", "en.yml", "fr.yml"]
    printed = task.train(
        [
            program, "train", *common, "--type", "s2s", "--model", "marian.npz", "--overwrite",
            "--train-sets", "train.en", "train.fr", "--valid-sets", "val.en", "val.fr",
            "--valid-metrics", "ce-mean-words", "--valid-freq", f"{VALIDATE_EVERY}u", "--keep-best",
            "--save-freq", f"{VALIDATE_EVERY}u", "--disp-freq", "10u", "--seed", 1,
            "--dim-vocabs", SIZE.vocabulary, SIZE.vocabulary, "--dim-emb", SIZE.embedding,
            "--dim-rnn", SIZE.hidden, "--mini-batch", BATCH, "--maxi-batch", 20, "--max-length", 50,
            "--optimizer", "adam", "--learn-rate", RATE, "--clip-norm", CLIP,
            "--dropout-rnn", DROPOUT, "--workspace", 1000,
        ],
        "marian",
    )  # fmt: skip
    command = [
        program, "decode", *common, "--models", "marian.npz.best-ce-mean-words.npz",
        "--beam-size", BEAM, "--mini-batch", 16, "--quiet",
    ]  # fmt: skip
    return task.translate(command, "marian"), last_number(r"Up\. (\d+)", printed)


SYSTEMS: dict[str, Callable[[Task], tuple[list[str], int]]] = {
    "nmt": train_nmt,
    "joeynmt": train_joeynmt,
    "marian": train_marian,
}


def last_number(pattern: str, printed: str) -> int:
    """Returns the number that the pattern's group captures in its last match."""
    return int(re.findall(pattern, printed)[-1].replace(",", ""))


def write_tokenised(source: Path, folder: Path) -> None:
    """Writes tokenised text and, for Marian, vocabularies of the most frequent training words."""
    for language in ("en", "fr"):
        tokenise = Tokeniser(language).tokenise
        for name in ("train", "val", "test2016"):
            file = f"{name}.{language}"
            text = "".join(" ".join(tokenise(line)) + "\n" for line in read_lines(source / file))
            (folder / file).write_text(text)
        counts = Counter((folder / f"train.{language}").read_text().split())
        words = [word for word, _ in counts.most_common(SIZE.vocabulary - 2)]
        vocabulary = {word: number for number, word in enumerate(["</s>", "<unk>", *words])}
        written = yaml.safe_dump(vocabulary, allow_unicode=True, sort_keys=False, width=10**6)
        (folder / f"{language}.yml").write_text(written)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--only", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--folder", type=Path, default=Path("build/quality"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    write_tokenised(args.text, args.folder)
    references = list(read_lines(args.folder / "test2016.fr"))
    task = Task(args.folder.absolute(), round(60 * args.minutes))
    for name in args.only:
        translations, updates = SYSTEMS[name](task)
        score = BLEU(tokenize="none", force=True).corpus_score(translations, [references])
        print_line(
            {
                "system": name, "minutes": args.minutes, "updates": updates, "bleu": score.score,
                "brevity_penalty": score.bp,
            }
        )  # fmt: skip


if __name__ == "__main__":
    main()
