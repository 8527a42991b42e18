"""The interface of executors: a job is a module-level function with one picklable argument, its result a future.

``LocalProcesses`` (``local.py``) runs jobs in processes of this machine, plug-ins of the group ``soakwatch.executors``
elsewhere; ``executor_for`` (``choose.py``) makes the one for ``--on``. All import the function by module and name:
pickle refuses functions of ``__main__``, lambdas and closures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from soakwatch.core.errors import SoakwatchError

T = TypeVar("T")
R = TypeVar("R")
Q = TypeVar("Q")


class ClusterError(SoakwatchError):
    """Jobs cannot run there: no scheduler, no worker, other versions, no such testbed."""


class JobLostError(SoakwatchError):
    """A job has no result because its worker died; ``str()`` names the job."""


class Executor(Protocol):
    """Runs jobs. A context manager: leaving it ends what still runs (``close``).

    ``label`` names a job in errors (default: the function's name). ``resource``, such as ``testbed-a``, is held by one
    job at a time; "" is none. A job's exception comes out of its future.
    """

    @property
    def slots(self) -> int:
        """How many jobs run at once now; at least 1."""
        ...

    @property
    def same_machine(self) -> bool:
        """True if jobs run on this machine, with its files and locks."""
        ...

    def resources(self) -> frozenset[str] | None:
        """The resources that workers have; None if every resource is local."""
        ...

    def submit(self, function: Callable[[T], R], argument: T, *, resource: str = "", label: str = "") -> Future[R]:
        """Runs ``function(argument)``; if its worker dies, the job is started again.

        The future raises JobLostError after the second loss on this machine, or on a cluster after as many as
        ``distributed.scheduler.allowed-failures`` allows.
        """
        ...

    def submit_files(
        self, function: Callable[[T, Path], R], argument: T, files: Sequence[Path], *, label: str = ""
    ) -> Future[R]:
        """Runs ``function(argument, folder)`` as ``submit`` does. ``folder`` has ``files`` (all of one folder here) by
        their names. It may hold other files, and nothing in it may be changed: on shared storage it is the original
        folder."""
        ...

    def submit_into(
        self, function: Callable[[T, Path], R], argument: T, folder: Path, *, resource: str = "", label: str = ""
    ) -> Future[R]:
        """Runs ``function(argument, place)``, which writes files below ``place`` (it need not exist). When the future
        is done they are in ``folder`` (which must not exist, or be empty), each verified by size and SHA-256.

        Started at most once: if its worker dies, the future raises JobLostError, and the caller decides on another
        attempt. If the function raises, or its process on this machine dies, ``folder`` has what was written until
        then.
        """
        ...

    def end(self, future: Future[R], *, at_once: bool) -> None:
        """Ends a job: ``still_wanted`` turns False in it and its result is awaited; if ``at_once``, it is not awaited
        and the future raises JobLostError. Does nothing if the job is done."""
        ...

    def close(self) -> None:
        """Cancels jobs that have not begun and ends running ones (``still_wanted`` turns False). May be called
        twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def _always() -> bool:
    return True


WANTED: ContextVar[Callable[[], bool]] = ContextVar("soakwatch_job_wanted", default=_always)
"""Whether the current job's result is still wanted; executors set it."""


def still_wanted() -> bool:
    """For a long job: whether anybody still waits for its result. A job that polls this, say every second, and ends
    soon after False leaves nothing running when its driver ends. True outside an executor."""
    return WANTED.get()()


def completed(
    submit: Callable[[T], Future[R]], arguments: Iterable[T], slots: Callable[[], int]
) -> Generator[tuple[T, Future[R]], None, None]:
    """Submits a job for each argument; yields argument and future as they are done.

    Only twice ``slots()`` jobs are under way at once, so that thousands of arguments or results are not held in memory.
    """
    waiting = deque[tuple[T, Future[R]]]()
    source = iter(arguments)
    more = True
    while more or waiting:
        while more and len(waiting) < 2 * max(1, slots()):
            try:
                argument = next(source)
            except StopIteration:
                more = False
                break
            waiting.append((argument, submit(argument)))
        if waiting:
            wait([future for _, future in waiting], return_when=FIRST_COMPLETED)
        done = [pair for pair in waiting if pair[1].done()]
        waiting = deque(pair for pair in waiting if not pair[1].done())
        yield from done
