"""Whether this machine may talk to W&B."""

from __future__ import annotations

import netrc
import os
from pathlib import Path
from urllib.parse import urlsplit


def has_key() -> bool:
    """Whether W&B would find a key without asking for one."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        path = os.environ.get("NETRC", str(Path.home() / ".netrc"))
        server = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname
        return netrc.netrc(path).authenticators(str(server)) is not None
    except (OSError, netrc.NetrcParseError):
        return False
