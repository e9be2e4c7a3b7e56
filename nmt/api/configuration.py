"""The configuration of a training composed in Python, as the command line composes it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hydra import compose, initialize_config_dir

from nmt.cli.composition import conf_folder, register_configs, with_plus
from nmt.cli.errors import COMPOSING, explain
from nmt.config import TrainConfig
from nmt.config.validation import load
from nmt.data.sources import leave_out_absent
from nmt.utils.arguments import listed
from nmt.utils.errors import InputError

_ONE_AT_A_TIME = threading.RLock()  # what Hydra composes with is global


def configure(*overrides: str, searchpath: Sequence[str] = ()) -> TrainConfig:
    """The configuration that `nmt.train` would run with, checked.

    Args:
        overrides: as they are typed after a command, such as `"+experiment=rnnsearch50"`.
        searchpath: where options of your own are, such as `"file:///home/me/conf"` or
            `"pkg://mine.conf"`.

    Raises:
        InputError: naming the key, with the words that the command would have printed.
        TypeError: for what is no text.
    """
    register_configs(["train"])
    typed = with_plus(listed(overrides, "overrides", str))
    if searchpath:
        typed.append(f"hydra.searchpath=[{','.join(listed(searchpath, 'searchpath', str))}]")
    try:
        with _ONE_AT_A_TIME, initialize_config_dir(str(conf_folder()), version_base="1.3"):
            composed = compose("train", overrides=typed)
            config = load(composed)
            leave_out_absent(config.data)
    except (*COMPOSING, ValueError) as error:
        raise InputError(explain(error, TrainConfig)) from error
    assert isinstance(config, TrainConfig)
    return config
