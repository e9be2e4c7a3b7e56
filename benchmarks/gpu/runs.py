"""The commands as they are typed: killed and resumed, and on two ranks that share the one GPU."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.process import Ended, run_apart
from benchmarks.gpu.recordings import rehearse_all_recordings
from benchmarks.gpu.setting import Setting

UPDATES, EVERY = 8, 4
KILLED = 7  # the micro-batch before which a run is killed
RANKS = 2
LIMITS = {"32": 1e-4, "bf16-mixed": 2e-2}  # of the norm of all weights
SCORES = {"32": 1e-3, "bf16-mixed": 5e-2}  # of NLL a word


def options(setting: Setting) -> list[str]:
    """Of every training here: small, with graphs, dropout and all that a finished run writes."""
    size = [] if setting.rehearse else ["size=laptop", "data.batch_size=80"]
    return [
        "+experiment=rnnsearch50", "regime=tiny", f"trainer={'cpu' if setting.rehearse else 'gpu'}",
        "logger=csv", "trainer.enable_progress_bar=false", "report.heatmaps=0", "report.figures=[]",
        f"trainer.max_steps={UPDATES}", f"trainer.val_check_interval={EVERY}", "evaluation.resamples=0",
        "evaluation.dictionary_sample=16", "evaluation.train_sample=0",
        f"data.cache={setting.shared}/runs", *size,
    ]  # fmt: skip


def resume(setting: Setting, findings: Findings) -> None:
    """A run that is killed and resumed ends with the weights of one that was not; then it is used."""
    typed = [*options(setting), "trainer.precision=bf16-mixed", "model.dropout=0.2"]
    straight, killed = setting.folder / "straight", setting.folder / "killed"
    nmt(setting, "train", *typed, f"hydra.run.dir={straight}")
    ended = start(setting, "train", *typed, f"hydra.run.dir={killed}", kill=KILLED)
    findings.check("the killed run: exit code", ended.code, equals=-signal.SIGKILL)
    nmt(setting, "train", f"resume={killed}")
    one, other = weights(straight), weights(killed)
    different = [name for name, value in one.items() if not torch.equal(value, other[name])]
    findings.check("weights that are not the same bits", different, equals=[])
    findings.check("scores", scores(killed), equals=scores(straight))
    checkpoint = f"checkpoint={straight}/checkpoints/best.ckpt"
    evaluated = setting.folder / "evaluated"
    nmt(setting, "evaluate", checkpoint, f"hydra.run.dir={evaluated}")
    findings.check("scores of the evaluation", scores(evaluated), equals=scores(straight))
    lines = ["the house is small .", "a man", "we know that the old woman sees the dog ."]
    source = setting.folder / "source.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    said = setting.folder / "translated"
    nmt(setting, "translate", checkpoint, stdin=source, stdout=said)
    translated = said.read_text().splitlines()
    findings.check("lines translated", len(translated), equals=len(lines))
    findings.note(scores=scores(straight), translated=translated)


def ranks(setting: Setting, findings: Findings) -> None:
    """Two ranks that share the device, with accumulation, against one: weights and sharded tests."""
    findings.leave_out("NCCL", "needs a GPU for each rank")
    for precision in LIMITS:
        typed = [*options(setting), f"trainer.precision={precision}"]
        alone, shared = setting.folder / f"one-{precision}", setting.folder / f"two-{precision}"
        nmt(setting, "train", *typed, f"hydra.run.dir={alone}")
        together = ("trainer=ddp", f"trainer.devices={RANKS}", "trainer.accumulate_grad_batches=2")
        accelerator = f"trainer.accelerator={'cpu' if setting.rehearse else 'gpu'}"
        given = [word for word in typed if not word.startswith("trainer=")]
        in_ranks(setting, *given, *together, accelerator, f"hydra.run.dir={shared}")
        one, two = (
            torch.cat([w.flatten().double() for w in weights(run).values()])
            for run in (alone, shared)
        )
        apart = float((two - one).norm() / one.norm())
        findings.check(f"{precision}: distance of the weights", apart, at_most=LIMITS[precision])
        results = [json.loads((run / "results.json").read_text()) for run in (alone, shared)]
        findings.check(f"{precision}: devices", results[1]["train"]["devices"], equals=RANKS)
        for name in results[0]["test"]:
            first, second = (result["test"][name] for result in results)
            nll = [of["nll_per_word"]["score"] for of in (first, second)]
            findings.note(**{f"{precision}: {name}, NLL a word": nll})
            share = abs(nll[1] / nll[0] - 1)
            findings.check(f"{precision}: {name}, NLL a word", share, at_most=SCORES[precision])
            sentences = [of["bleu"]["all"]["sentences"] for of in (first, second)]
            findings.check(f"{precision}: {name}, sentences", sentences[1], equals=sentences[0])


def in_ranks(setting: Setting, *typed: str) -> None:
    """`nmt.train` in two processes that meet on this machine; raises RuntimeError where one fails."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    ended: dict[int, Ended] = {}

    def one(rank: int) -> None:
        env = {
            "LOCAL_RANK": str(rank), "NODE_RANK": "0", "WORLD_SIZE": str(RANKS),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
        ended[rank] = start(setting, "train", *typed, env=env)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, each in ended.items():
        if each.code:
            raise RuntimeError("\n".join([f"rank {rank}: code {each.code}", *each.said]))


def nmt(setting: Setting, command: str, *typed: str, **streams: Path) -> None:
    """`python -m nmt.<command>` to its end; raises RuntimeError with what it said where it fails."""
    ended = start(setting, command, *typed, kill=0, env=None, **streams)
    if ended.code:
        raise RuntimeError("\n".join([f"nmt.{command}: code {ended.code}", *ended.said]))


def start(
    setting: Setting,
    command: str,
    *typed: str,
    kill: int = 0,
    env: dict[str, str] | None = None,
    **streams: Path,
) -> Ended:
    """Runs a command in a process of its own.

    Args:
        kill: the micro-batch, from 1, before which the process is killed; 0 for none.
        env: added to the environment; with `LOCAL_RANK` in it the process is one of several.
        streams: `stdin` and `stdout`, files.
    """
    log = setting.folder / f"{command}-{threading.get_ident()}.log"
    given = (setting.rehearse, command, typed, kill, env or {}, streams)
    return run_apart(
        become, given, 400 if setting.rehearse else 100, log, setting.start, own_group=False
    )


def become(
    rehearse: bool,
    command: str,
    typed: tuple[str, ...],
    kill: int,
    env: dict[str, str],
    streams: dict[str, Path],
) -> None:
    """Turns this process into a command."""
    os.environ.update(env)
    if "stdin" in streams:
        sys.stdin = streams["stdin"].open()
    if "stdout" in streams:
        sys.stdout = streams["stdout"].open("w")
    if rehearse:
        rehearse_all_recordings()
    elif env:
        share_the_gpu()
    if kill:
        kill_before(kill)
    no_page()
    sys.argv = [f"nmt.{command}", *typed]
    sys.modules.pop(f"nmt.{command}", None)
    runpy.run_module(f"nmt.{command}", run_name="__main__", alter_sys=True)


def share_the_gpu() -> None:
    """Gives all ranks the first GPU, which NCCL refuses and gloo does not."""
    from pytorch_lightning.accelerators import CUDAAccelerator
    from pytorch_lightning.strategies import DDPStrategy

    replaced: list[tuple[Any, str, Any]] = [
        (CUDAAccelerator, "parse_devices", staticmethod(lambda devices: [0] * RANKS)),
        (
            CUDAAccelerator,
            "get_parallel_devices",
            staticmethod(lambda devices: [torch.device("cuda", 0)] * RANKS),
        ),
        (DDPStrategy, "_get_process_group_backend", lambda self: "gloo"),
    ]
    for owner, name, value in replaced:
        getattr(owner, name)  # it must be there
        setattr(owner, name, value)


def kill_before(micro_batch: int) -> None:
    """Kills this process before one of its micro-batches, as `kill -9` does."""
    from nmt.training.callbacks import Seeds

    real, made = Seeds.on_train_batch_start, 0

    def hooked(*arguments: Any) -> None:
        nonlocal made
        made += 1
        if made == micro_batch:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*arguments)

    Seeds.on_train_batch_start = hooked  # type: ignore[method-assign, assignment]


def no_page() -> None:
    """The page takes longer than such a run."""
    from nmt.run import finish

    finish.build_page = lambda *arguments, **keywords: None  # type: ignore[assignment]


def weights(run: Path) -> dict[str, Tensor]:
    """Of a finished run's last checkpoint."""
    content = torch.load(run / "checkpoints/last.ckpt", map_location="cpu", weights_only=True)
    found: dict[str, Tensor] = content["state_dict"]
    return found


def scores(run: Path) -> dict[str, Any]:
    """BLEU and NLL a word of each test set."""
    found = json.loads((run / "results.json").read_text())["test"]
    return {
        name: {"bleu": of["bleu"], "nll_per_word": of["nll_per_word"]} for name, of in found.items()
    }
