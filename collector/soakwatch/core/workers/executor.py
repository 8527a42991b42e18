"""The seam to where work is done: a job is a module-level function and one picklable argument, its result a future.

``LocalProcesses`` (``local.py``) works in processes of this machine, a plug-in of the group ``soakwatch.executors`` on
others; ``executor_for`` (``choose.py``) makes the one that ``--on`` asks for. All of them import the job's function by
its module and name: a function of ``__main__``, a lambda or a closure is refused by pickle.
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
    """Where work should be done nothing can be done: no scheduler, no worker, other versions, no such testbed."""


class JobLostError(SoakwatchError):
    """A job has no result, for whoever worked on it is gone; ``str()`` names the job."""


class Executor(Protocol):
    """Where jobs are done. A context manager: leaving it ends what still runs (``close``).

    ``label`` names a job in errors, default: the function's name. ``resource`` is what at most one job at a time holds,
    such as ``testbed-a``; "" is nothing. Whatever a job raises comes out of its future.
    """

    @property
    def slots(self) -> int:
        """How many jobs are done at once now; at least 1."""
        ...

    @property
    def same_machine(self) -> bool:
        """Whether jobs are done on this machine: its files and its locks are theirs."""
        ...

    def resources(self) -> frozenset[str] | None:
        """The resources that somebody here has; None where every resource is this machine's own."""
        ...

    def submit(self, function: Callable[[T], R], argument: T, *, resource: str = "", label: str = "") -> Future[R]:
        """``function(argument)``, for jobs that may be begun again: one whose worker died is.

        The future raises JobLostError where that happens again: once more on this machine, as often as the scheduler
        allows (``distributed.scheduler.allowed-failures``) on a cluster.
        """
        ...

    def submit_files(
        self, function: Callable[[T, Path], R], argument: T, files: Sequence[Path], *, label: str = ""
    ) -> Future[R]:
        """``function(argument, folder)``, as ``submit``: the folder holds ``files``, which lie in one folder here, by
        their names. It may hold others, and nothing in it may be changed: where a worker sees the same files
        (shared storage), it is their own folder."""
        ...

    def submit_into(
        self, function: Callable[[T, Path], R], argument: T, folder: Path, *, resource: str = "", label: str = ""
    ) -> Future[R]:
        """``function(argument, place)``, which writes files below ``place`` (it need not exist). They are in
        ``folder`` (which must not exist, or be empty) when the future is done: each with the size and SHA-256 that it
        had where it was written.

        Begun at most once: if whoever works on it dies, the future raises JobLostError, and whoever keeps a ledger
        decides whether to submit another attempt. Where the function raises, or its process died on this machine, what
        it wrote until then is in ``folder`` as it is.
        """
        ...

    def end(self, future: Future[R], *, at_once: bool) -> None:
        """Ends a job that was submitted here: ``still_wanted`` is False there, and its result is awaited all the same;
        ``at_once``: nobody waits for it, and the future raises JobLostError. Nothing for one that is done."""
        ...

    def close(self) -> None:
        """Cancels what has not begun and ends what runs (``still_wanted`` is False there). May be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def _always() -> bool:
    return True


WANTED: ContextVar[Callable[[], bool]] = ContextVar("soakwatch_job_wanted", default=_always)
"""Whether the result of the job that is being done is still wanted; set by whoever does jobs."""


def still_wanted() -> bool:
    """For a long job: whether anybody still waits for its result. A job that polls this (each second, say) and ends
    soon after False leaves nothing running behind a driver that was ended. True where no executor works."""
    return WANTED.get()()


def completed(
    submit: Callable[[T], Future[R]], arguments: Iterable[T], slots: Callable[[], int]
) -> Generator[tuple[T, Future[R]], None, None]:
    """Submits a job for each argument and yields argument and future as they are done, in that order.

    Arguments are taken as room comes free: at most twice ``slots()`` jobs are under way, so that neither a generator
    of thousands nor their results are held in memory.
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
