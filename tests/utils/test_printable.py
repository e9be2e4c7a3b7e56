"""What a stranger's file says reaches no terminal as commands to it."""

from __future__ import annotations

import logging

import hydra
import pytest
from hydra.utils import get_class

from nmt.cli.command import exit_code
from nmt.cli.composition import conf_folder, register_configs
from nmt.utils.errors import InputError
from nmt.utils.printable import PrintableFormatter, printable
from nmt.utils.untrusted import bounded, dotted

ATTACK = "\x1b]0;PWNED\x07\x1b[31m\x9b2J\u202e\u2066\u200f\r"
HARMLESS = r"\x1b]0;PWNED\x07\x1b[31m\x9b2J\u202e\u2066\u200f\r"


def test_letters_marks_joiners_and_layout_stay() -> None:
    words = "Zürich e\u0301 漢字 ქართული क्\u200dष می\u200cخواهم – −1\u202f000\ta\nb"
    assert printable(words) == words
    assert printable(ATTACK) == HARMLESS


def test_the_line_that_a_command_ends_with(capsys) -> None:
    def refuse() -> None:
        raise InputError(f"runs/{ATTACK}: damaged")

    assert exit_code(refuse, "train", []) == 2
    assert capsys.readouterr().err == f"nmt: runs/{HARMLESS}: damaged\n"


def test_keys_of_a_file() -> None:
    assert dotted(["é", "\x1b[31m\x7f"]) == r"\xe9.\x1b[31m\x7f"
    with pytest.raises(InputError, match=r"^f: a\\x1b\.b=nan: must be") as refused:
        bounded({"a\x1b": {"b": float("nan")}}, "f")
    assert str(refused.value).isprintable()


def test_log_lines_and_their_tracebacks() -> None:
    try:
        raise ValueError(ATTACK)
    except ValueError as error:
        told = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("nmt", logging.ERROR, "f", 1, "run %s", (ATTACK,), told)
    line = PrintableFormatter("%(levelname)s %(message)s").format(record)
    assert line.startswith(f"ERROR run {HARMLESS}\nTraceback")
    assert line.endswith(f"ValueError: {HARMLESS}")


@pytest.mark.parametrize("command", ["train", "compare"])
def test_every_log_of_a_command_is_written_so(command) -> None:
    register_configs([command])
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        made = hydra.compose(command, return_hydra_config=True).hydra
    for logs in (made.job_logging, made.hydra_logging):
        used = {handler.formatter for handler in logs.handlers.values()}
        assert used
        for name in used:
            assert get_class(logs.formatters[name]["class"]) is PrintableFormatter
