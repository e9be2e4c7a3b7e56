"""Imports of packages that belong to an extra of this project."""

import importlib
from types import ModuleType

from nmt.utils.errors import InputError


def need(module: str, extra: str, wanted_by: str) -> ModuleType:
    """Imports a module; raises InputError with the command that installs its extra.

    Args:
        module: to import.
        extra: of this project, which installs it.
        wanted_by: what was asked for, such as a key and its value.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{wanted_by}: {error}\n"
            f"in the project's folder: uv sync --extra {extra}, or pip install -e '.[{extra}]'"
        ) from error
