"""Whether W&B finds an API key on this machine without a prompt."""

from __future__ import annotations

import netrc
import os
from pathlib import Path
from urllib.parse import urlsplit

# `wandb login` writes the key under one of these names, depending on its version
SERVERS = ("api.wandb.ai", "api.forge.coreweave.com")
WITHOUT_KEY = "W&B has no key here; run `wandb login` or set WANDB_API_KEY"


def has_key() -> bool:
    """Whether there is a key in the environment or in `~/.netrc`.

    `wandb.login(prompt=False)` would verify it over the network.
    """
    if os.environ.get("WANDB_API_KEY"):
        return True
    server = os.environ.get("WANDB_BASE_URL")
    servers = [str(urlsplit(server).hostname)] if server else SERVERS
    try:
        known = netrc.netrc(os.environ.get("NETRC", Path.home() / ".netrc"))
    except (OSError, netrc.NetrcParseError):
        return False
    return any(known.authenticators(server) for server in servers)
