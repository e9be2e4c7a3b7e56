"""Imports of optional packages (extras of this project)."""

import importlib
from types import ModuleType

from nmt.utils.errors import InputError


def need(module: str, extra: str, why: str) -> ModuleType:
    """Imports a package of an extra.

    Args:
        module: to import.
        extra: of this project, that brings it.
        why: what was asked for, such as a key and its value.

    Raises:
        InputError: if it is not installed, naming the extra and the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{why}: needs the extra '{extra}', which is not installed ({error});\n"
            f"pip install 'nmt[{extra}]', or in a checkout: pip install -e '.[{extra}]'"
        ) from error
