"""The command line: composes configurations, prints errors, and ends sweeps."""

import sys

from nmt.utils.startup import end_on_signals

# Signals must end a command without a traceback while it still imports Hydra, which can take seconds.
# A notebook, or a program that imports nmt, keeps its handlers.
_spec = getattr(sys.modules["__main__"], "__spec__", None)
if _spec is not None and _spec.name.startswith("nmt."):
    end_on_signals()
