"""The exceptions that end a command with a message and an exit code.

Each carries a message of one or two lines for the user, which commands print without a traceback.
"""


class InputError(Exception):
    """The configuration or an input is wrong (exit code 2); as a rule nothing was started.

    The message names the key, or the file and line, says what is wrong and what would be right.

    Attributes:
        at_work: the work had begun: the run's log tells of it.
    """

    at_work = False


class RunError(Exception):
    """The work was started and could not be finished (exit code 1)."""


class Interrupted(BaseException):
    """A signal asked the work to end, and it did (exit code 128 + signal).

    Not an `Exception`, so that nothing that carries on after an error carries on after this.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


def first_line(error: BaseException) -> str:
    """The first line of an error's message; of one without a message the name of its type.

    >>> first_line(ValueError("\\n too long\\nby far")), first_line(KeyError())
    ('too long', 'KeyError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]
