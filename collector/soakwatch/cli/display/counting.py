"""Progress of work on many records, on standard error: a bar on a terminal, else occasional lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click

from soakwatch.core.units import show_seconds

_LINE_EVERY_S = 60.0


class Counting(Protocol):
    """Counts what is done."""

    def one_more(self) -> None:
        """Count one more."""
        ...


class _Lines:
    """Prints a line now and then, without a terminal."""

    def __init__(self, total: int, every_s: float, word: str) -> None:
        self._total, self._every_s, self._word, self._done = total, every_s, word, 0
        self._began_s = self._said_s = time.monotonic()

    def one_more(self) -> None:
        """Count one more."""
        self._done += 1
        now_s = time.monotonic()
        if now_s - self._said_s >= self._every_s and self._done < self._total:
            self._said_s = now_s
            left_s = (now_s - self._began_s) / self._done * (self._total - self._done)
            click.echo(f"{self._done} of {self._total} {self._word}, about {show_seconds(left_s)} left", err=True)


class _Bar:
    """A progress bar with the time left."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self._advance = advance

    def one_more(self) -> None:
        """Count one more."""
        self._advance()


@contextmanager
def counting(total: int, every_s: float = _LINE_EVERY_S, word: str = "judged") -> Iterator[Counting]:
    """Show progress towards ``total``; without a terminal, a line every ``every_s`` seconds. ``word`` says what is done
    to each."""
    if not sys.stderr.isatty():
        yield _Lines(total, every_s, word)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(word), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(word, total=total)
        yield _Bar(lambda: bar.advance(task))
