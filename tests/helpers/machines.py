"""Two machines in one: processes with a network, a name and an address of their own each (Linux).

Each machine is a process in a namespace of its own for the network, the host's name and the mounts;
a pair of virtual Ethernet devices joins the two. What is changed (`/etc/hosts` among it) is seen
inside alone, and is gone when the two processes have ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("unshare", "nsenter", "ip", "mount")
NAMESPACES = ("--net", "--uts", "--mount")
ADDRESSES = {"first": "10.200.7.1", "second": "10.200.7.2"}


class Machine:
    """A machine by its name, which is also the host's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._holder = subprocess.Popen(
            ["unshare", *NAMESPACES, "sleep", "infinity"], stderr=subprocess.DEVNULL
        )
        self.pid = self._holder.pid

    def inside(self, *command: str | Path, folder: Path = Path("/")) -> list[str]:
        """A command as it is run there, in a folder."""
        enter = ["nsenter", f"--target={self.pid}", *NAMESPACES]
        return [*enter, "env", f"--chdir={folder}", *map(str, command)]

    def call(self, *command: str | Path) -> None:
        subprocess.run(self.inside(*command), check=True, capture_output=True, timeout=30)

    def start(self, *command: str, folder: Path, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program in a session of its own; `options` are those of `Popen`."""
        return subprocess.Popen(
            self.inside(*command, folder=folder), start_new_session=True, **options
        )

    def end(self) -> None:
        """Ends it with all processes that run there."""
        own = os.readlink(f"/proc/{self.pid}/ns/net")
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "ns/net") == own:
                    os.kill(int(process.name), signal.SIGKILL)
        self._holder.wait()


@contextlib.contextmanager
def two_machines(folder: Path) -> Iterator[Sequence[Machine]]:
    """Two machines that reach each other by name; skips the test where they cannot be made.

    Args:
        folder: for their table of names.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no namespaces here: {', '.join(missing)} missing (Debian: iproute2)")
    hosts = folder / "hosts"
    names = [f"{address} {name}\n" for name, address in ADDRESSES.items()]
    hosts.write_text("".join(["127.0.0.1 localhost\n", *names]))
    with contextlib.ExitStack() as stack:
        machines = [Machine(name) for name in ADDRESSES]
        for machine in machines:
            stack.callback(machine.end)
        first, second = machines
        try:
            _wait_until_apart(machines)
            peer = ("peer", "name", "eth0", "netns", str(second.pid))
            first.call("ip", "link", "add", "eth0", "type", "veth", *peer)
            for machine in machines:
                machine.call("hostname", machine.name)
                machine.call("mount", "--bind", hosts, "/etc/hosts")
                address = f"{ADDRESSES[machine.name]}/24"
                machine.call("ip", "address", "add", address, "dev", "eth0")
                for device in ("lo", "eth0"):
                    machine.call("ip", "link", "set", device, "up")
        except (subprocess.SubprocessError, TimeoutError) as error:
            said = getattr(error, "stderr", b"") or b""
            pytest.skip(f"no namespaces here: {error} {said.decode().strip()}")
        yield machines


def _wait_until_apart(machines: Sequence[Machine]) -> None:
    """Until each has a network of its own; raises TimeoutError where it is given none."""
    ours, end = os.readlink("/proc/self/ns/net"), time.monotonic() + 10
    for machine in machines:
        while os.readlink(f"/proc/{machine.pid}/ns/net") == ours:
            if time.monotonic() > end or machine._holder.poll() is not None:
                raise TimeoutError("unshare: not permitted")
            time.sleep(0.02)
