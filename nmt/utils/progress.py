"""Progress of any stage of work: a bar on a terminal, lines elsewhere, and the time left."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tqdm import tqdm

from nmt.utils.environment import rank

log = logging.getLogger(__name__)

SILENCE = 10.0  # seconds between two lines where no bar is drawn
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}{postfix}]"

_open: list[Stage] = []  # the innermost last: it alone writes lines
_said = time.monotonic()  # when the last line was written, whatever stage wrote it


class Stage:
    """A stage of a command, whose progress is shown at least every `SILENCE` seconds.

    On a terminal that is a bar where the amount of work is known; elsewhere lines of the log, which a
    thread writes, so that one long step is not silent. Nothing is shown on ranks other than 0.

    Args:
        title: what is done, such as `translating test`.
        total: how much of it there is; None: not known, or nobody counts it.
        unit: what is counted, in the singular.
        shown: false: nothing is.
        left: gives the time left of the whole command; what is advanced is timed by it.
        kind: what `left` calls this work.
        text: makes the lines, in place of the title and what is counted.
        begun: how much had been done before.
        leave: whether the bar stays when it has ended.
    """

    def __init__(
        self,
        title: str,
        total: int | None = None,
        unit: str = "",
        *,
        shown: bool = True,
        left: TimeLeft | None = None,
        kind: str = "",
        text: Callable[[], str] | None = None,
        begun: int = 0,
        leave: bool = True,
    ) -> None:
        self.title, self.total, self.unit, self.done = title, total, unit, begun
        self._shown = shown and rank() == 0
        self._left, self._kind, self._text, self._leave = left, kind, text, leave
        self._bar: Any = None
        self._noted = ""
        self._ended = threading.Event()
        self._begun = self._advanced = time.monotonic()

    def __enter__(self) -> Stage:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Shows the stage from now on."""
        self._begun = self._advanced = time.monotonic()
        if not self._shown:
            return
        _open.append(self)
        if self.total is not None and has_terminal():
            self._bar = tqdm(
                total=self.total,
                initial=self.done,
                desc=self.title,
                unit=f"{self.unit}s",
                bar_format=BAR,
                dynamic_ncols=True,
                leave=self._leave,
            )
        else:
            threading.Thread(target=self._write_lines, name="progress", daemon=True).start()

    def end(self) -> None:
        """Ends the display; may be called more than once."""
        self._ended.set()
        if self in _open:
            _open.remove(self)
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def advance(self, amount: int = 1, work: float | None = None) -> None:
        """Counts work that is done, at most `total`: amounts of other ranks are estimates.

        Args:
            amount: in the stage's unit.
            work: in the unit of what is left; None: the same.
        """
        now = time.monotonic()
        before = self.done
        self.done += amount
        if self.total is not None:
            self.done = min(self.done, self.total)
        if self._left is not None:
            self._left.done(self._kind, amount if work is None else work, now - self._advanced)
        self._advanced = now
        if self._bar is not None:
            if self._left is not None:
                self._bar.set_postfix_str(str(self._left), refresh=False)
            self._bar.update(self.done - before)

    def note(self, text: str) -> None:
        """Shows a text beside the bar, and in the stage's own lines."""
        self._noted = text
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def line(self) -> str:
        """The line that is logged where there is no bar."""
        if self._text is not None:
            return self._text()
        if self.total is None:
            seconds = time.monotonic() - self._begun
            done = f"{counted(self.done, self.unit)}, " if self.done else ""
            return f"{self.title}: {done}{duration(seconds)} so far" if seconds >= 1 else self.title
        told = f"{self.title}: {self.done:,} of {counted(self.total, self.unit)}"
        told += f" ({self._noted})" if self._noted else ""
        return told if self._left is None else f"{told}, {self._left}"

    def _write_lines(self) -> None:
        global _said
        told = -1
        while not self._ended.wait(max(0.05, _said + SILENCE - time.monotonic())):
            if _said + SILENCE <= time.monotonic() and _open[-1:] == [self]:
                _said = time.monotonic()
                counts = self.total is None and self.unit
                if not (counts and self.done == told):  # else it waits for its input
                    log.info(self.line())
                told = self.done


@contextlib.contextmanager
def timed(stage: str) -> Iterator[None]:
    """Logs the wall-clock time of what is done inside, if it comes to its end."""
    start = time.perf_counter()
    yield
    log.info("%s: %.1f s", stage, time.perf_counter() - start)


class TimeLeft:
    """An estimate of the time that a command still takes, from the rate of each kind of work.

    Kinds of which nothing has been done yet are named as not timed.

    >>> left = TimeLeft({"updates": 100, "tests": 50})
    >>> left.done("updates", 20, seconds=10)
    >>> str(left)
    'about 40 s of updates left; tests not timed yet'
    >>> left.done("tests", 25, seconds=50)
    >>> str(left)
    'about 90 s left'
    """

    def __init__(self, work: Mapping[str, float]) -> None:
        """What is to be done of each kind, in the order in which it is."""
        self._work = dict(work)
        self._rates: dict[str, tuple[float, float]] = {}  # work that was timed, its seconds

    def expect(self, work: Mapping[str, float]) -> None:
        """Sets how much is to be done; kinds that are new come last."""
        self._work |= work

    def done(self, kind: str, amount: float, seconds: float) -> None:
        """Takes work off what is to be done, and times it."""
        self._work[kind] = max(0.0, self._work.get(kind, 0.0) - amount)
        timed, spent = self._rates.get(kind, (0.0, 0.0))
        self._rates[kind] = timed + amount, spent + seconds

    def seconds(self, kind: str) -> float | None:
        """What is left of a kind in seconds; None: it was not timed."""
        timed, spent = self._rates.get(kind, (0.0, 0.0))
        return spent / timed * self._work[kind] if timed else None

    def __str__(self) -> str:
        ahead = {kind: self.seconds(kind) for kind, amount in self._work.items() if amount}
        timed = {kind: seconds for kind, seconds in ahead.items() if seconds is not None}
        others = enumeration([kind for kind in ahead if kind not in timed])
        if not timed:
            return f"{others} to do, not timed yet" if others else "nearly done"
        about = f"about {duration(sum(timed.values()))}"
        if not others:
            return f"{about} left"
        return f"{about} of {enumeration(list(timed))} left; {others} not timed yet"


def unseen(_: object) -> None:
    """Ignores its argument: the default of callbacks that count work."""


def has_terminal() -> bool:
    """Whether bars can be drawn: they would fill a file with their every state."""
    return sys.stderr is not None and sys.stderr.isatty()


def duration(seconds: float) -> str:
    """Seconds as text: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "sentence"), counted(2000, "sentence")
    ('1 sentence', '2,000 sentences')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def enumeration(names: list[str]) -> str:
    """Names joined by commas and `and`.

    >>> enumeration(["updates", "tests", "figures"])
    'updates, tests and figures'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
