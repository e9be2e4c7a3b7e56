"""Experiments on neural machine translation by jointly learning to align and translate.

Each public name is imported on first use, so that `import nmt` does not load torch.
"""

import os
import sys

# `python -m` puts the current folder first on the path. There, a file such as pandas.py of a folder
# that somebody sent would replace the installed package. `nmt.config.code` adds the folder at the end
# if the configuration names code of the user.
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.argv[:1] == ["-m"]:
    if os.getcwd() != _OWN_FOLDER:
        sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    # The module that runs, as in `python -m nmt.train` or `python -mnmt.train`. It may also be a module
    # that imports nmt. A program that imports nmt keeps its handlers of signals.
    if sys.orig_argv[-len(sys.argv)].removeprefix("-m").partition(".")[0] == "nmt":
        from nmt.utils.startup import end_on_signals

        end_on_signals()

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nmt.utils.version import __version__

if sys.platform == "win32":
    print("this program runs on Linux and macOS; on Windows use WSL", file=sys.stderr)
    raise SystemExit(2)

if TYPE_CHECKING:
    from nmt.api import compare, configure, load, plot_alignment, plot_by_length, scores
    from nmt.inference.model import Model
    from nmt.inference.sentence import ScoredSentence
    from nmt.utils.errors import InputError

__all__ = [
    "InputError",
    "Model",
    "ScoredSentence",
    "__version__",
    "compare",
    "configure",
    "load",
    "plot_alignment",
    "plot_by_length",
    "scores",
]

_HOMES = {
    "InputError": "nmt.utils.errors.InputError",
    "Model": "nmt.inference.model.Model",
    "ScoredSentence": "nmt.inference.sentence.ScoredSentence",
    "compare": "nmt.api.compare",
    "configure": "nmt.api.configure",
    "load": "nmt.api.load",
    "plot_alignment": "nmt.api.plot_alignment",
    "plot_by_length": "nmt.api.plot_by_length",
    "scores": "nmt.api.scores",
}


class _Package(ModuleType):
    """Prevents the import of a submodule such as `nmt.compare` from replacing the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Imports a public name on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nmt' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
