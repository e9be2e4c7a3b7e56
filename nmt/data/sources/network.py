"""Whether a server answers, found out in seconds.

The libraries that fetch remote texts try again for half a minute where there is no network;
asking first gives the person at the keyboard an answer at once.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request


def reachable(url: str, seconds: float = 4.0) -> bool:
    """Whether the server of `url` answers anything at all within `seconds` (proxies included)."""
    answered = threading.Event()

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=seconds).close()
        except urllib.error.HTTPError:
            pass  # an error page is an answer
        except (OSError, ValueError):
            return
        answered.set()

    # A thread, since the time limit of a request does not cover looking up the host's name.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()
