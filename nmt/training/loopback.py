"""DDP on one machine that no other machine can talk to.

torch's rendezvous listens on every network interface, and its exchanges on that of the host's
name; neither needs to where all processes are on one machine.
"""

from __future__ import annotations

import os
import socket
import sys

import torch.distributed as dist
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy

HOST = "127.0.0.1"


class LoopbackDDP(DDPStrategy):
    """DDP whose processes were started by the first one, all on this machine."""

    def setup_distributed(self) -> None:
        environment = self.cluster_environment
        if isinstance(environment, LightningEnvironment) and not dist.is_initialized():
            self.set_world_ranks()
            interface = "lo0" if sys.platform == "darwin" else "lo"
            for library in ("GLOO", "NCCL"):
                os.environ.setdefault(f"{library}_SOCKET_IFNAME", interface)
            dist.init_process_group(
                self._get_process_group_backend(),
                store=loopback_store(environment.main_port, self.world_size, self.global_rank),
                rank=self.global_rank,
                world_size=self.world_size,
                timeout=self._timeout,
                device_id=self.root_device if self.root_device.type != "cpu" else None,
            )
        super().setup_distributed()


def loopback_store(port: int, world: int, rank: int) -> dist.TCPStore:
    """The store that the ranks meet at; rank 0 listens on the loopback interface alone."""
    if rank:
        return dist.TCPStore(HOST, port, world, is_master=False)
    listener = socket.create_server((HOST, port))
    return dist.TCPStore(
        HOST,
        port,
        world,
        is_master=True,
        master_listen_fd=listener.detach(),
        wait_for_workers=False,
    )
