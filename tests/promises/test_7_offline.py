"""Promise 7: everything works without a network, an account or a GPU. No command asks for input."""

from __future__ import annotations

import pytest

from tests.helpers.processes import TINY

# Refuses connections to other machines. Connections to W&B's local process are allowed.
NO_NETWORK = """
import socket
connect = socket.socket.connect
def local(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"a connection to {address[0]}")
    return connect(self, address)
socket.socket.connect = local
"""
NO_ACCOUNT = {"WANDB_MODE": "", "WANDB_API_KEY": "", "HF_TOKEN": "", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def offline(program):
    """Returns a function that runs a command without a network, an account, a GPU or a terminal."""

    def run(command: str, *typed: str, stdin: bytes = b"", figures: bool = False):
        home = {"HOME": str(program.folder / "home"), "NETRC": str(program.folder / "none")}
        options = {"env": {**NO_ACCOUNT, **home}, "stdin": stdin, "figures": figures}
        ended = program(command, *typed, hook=NO_NETWORK, **options)
        assert ended.code == 0, ended.err
        return ended

    return run


@pytest.mark.slow
def test_train_evaluate_translate_and_compare_work_offline(offline, program):
    tiny = [word for word in TINY if word != "logger=none"]
    assert len(tiny) < len(TINY)
    tiny += ["trainer.max_steps=2", "trainer.val_check_interval=2"]
    offline("train", *tiny, "hydra.run.dir=runs/a")  # logs to W&B, the default
    assert list((program.folder / "runs/a/wandb").glob("offline-run-*"))
    offline("evaluate", "checkpoint=runs/a", "sets=[test]", "logger=none", "hydra.run.dir=runs/b")
    assert offline("translate", "checkpoint=runs/a", stdin=b"the cat\n").out.count("\n") == 1
    offline("compare", "runs=[runs/a,runs/b]", "output=page", figures=True)
    assert (program.folder / "page/comparison.html").exists()
