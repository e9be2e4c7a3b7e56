import doctest

import pytest

from nmt.utils import errors
from nmt.utils.errors import first_line


def test_examples_in_docstrings():
    assert doctest.testmod(errors).failed == 0


@pytest.mark.parametrize("message", ["", " \n", "\n\n"])
def test_an_error_without_a_message_is_named_by_its_type(message):
    assert first_line(RuntimeError(message)) == "RuntimeError"
