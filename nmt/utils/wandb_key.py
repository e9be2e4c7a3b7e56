"""Whether a W&B API key is configured on this machine."""

from __future__ import annotations

import netrc
import os
from pathlib import Path
from urllib.parse import urlsplit

# of W&B itself, by its names: `wandb login` writes the key under the one its version knows
SERVERS = ("api.wandb.ai", "api.forge.coreweave.com")
WITHOUT_KEY = "W&B has no key here; run `wandb login` or set WANDB_API_KEY"


def has_key() -> bool:
    """Whether W&B would find a key without asking for one."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        path = os.environ.get("NETRC", str(Path.home() / ".netrc"))
        given = os.environ.get("WANDB_BASE_URL")
        servers = [str(urlsplit(given).hostname)] if given else SERVERS
        found = netrc.netrc(path)
        return any(found.authenticators(server) is not None for server in servers)
    except (OSError, netrc.NetrcParseError):
        return False
