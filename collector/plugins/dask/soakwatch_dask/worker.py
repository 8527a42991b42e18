"""Functions that ``cluster.py`` runs on the workers of a dask cluster.

The module does not import the library, which a worker has loaded.
"""

from __future__ import annotations

import importlib
import pickle
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Protocol, cast

from soakwatch.core.workers.executor import WANTED, ClusterError
from soakwatch_dask.parcel import FileSum, place_of, sum_of, sums_below, written

SAME = ("soakwatch", "soakwatch-dask", "distributed", "numpy", "scipy")
"""Packages whose versions must be equal, so that a verdict is the same wherever it is computed."""
END = "-end"
"""Suffix to a job's claim: the name of the event that asks the job to end."""
_RUNNING = "executing"
_ASK_S = 1.0


@dataclass(frozen=True, slots=True)
class NotHere:
    """The worker does not see the same files."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A job that may begin only once has been begun before, by a worker that is gone."""


@dataclass(frozen=True, slots=True)
class Written:
    """A job has ended, and its files are in ``place`` on the worker at ``address``. ``failure`` is what it raised."""

    address: str
    place: str
    files: tuple[FileSum, ...]
    result: object
    failure: Exception | None


class _State(Protocol):
    state: str


class _WorkerState(Protocol):
    tasks: Mapping[str, _State]


class _Worker(Protocol):
    address: str
    local_directory: str
    state: _WorkerState

    def get_current_task(self) -> str: ...


class _Flag(Protocol):
    def is_set(self) -> bool: ...

    def set(self) -> object: ...


@cache
def versions() -> Mapping[str, str]:
    """Versions that must be the same at both ends, by name."""
    return {"python": ".".join(platform.python_version_tuple()[:2]), **{name: metadata.version(name) for name in SAME}}


def differing(here: Mapping[str, str], there: Mapping[str, str], where: str) -> str:
    """A sentence about differing versions; "" if all are the same.

    >>> differing({"numpy": "2.1"}, {"numpy": "2.0"}, "tcp://b:1")
    'the worker tcp://b:1 has numpy 2.0 and here is 2.1: install the same versions at both ends'
    """
    different = [f"{name} {there.get(name)} and here is {here[name]}" for name in here if here[name] != there.get(name)]
    return f"the worker {where} has {', '.join(different)}: install the same versions at both ends" if different else ""


def work(payload: bytes, asked: Mapping[str, str]) -> object:
    """Run a job: a pickled function with its arguments. ``asked`` are the versions at the sender."""
    function, arguments = _job(payload, asked)
    return _done(function, arguments)


def work_here(payload: bytes, asked: Mapping[str, str], folder: str, sums: Sequence[FileSum]) -> object:
    """Run a job on files that this worker sees in their place; NotHere if one is missing or differs."""
    for expected in sums:
        file = Path(folder, expected.name)
        try:
            if file.stat().st_size != expected.size or sum_of(file, expected.name) != expected:
                return NotHere()
        except OSError:
            return NotHere()
    function, arguments = _job(payload, asked)
    return _done(function, (*arguments, Path(folder)))


def work_on_files(
    payload: bytes, asked: Mapping[str, str], sums: Sequence[FileSum], pieces: Sequence[Sequence[bytes]]
) -> object:
    """Run a job on files that were sent along, which are then deleted."""
    function, arguments = _job(payload, asked)
    with tempfile.TemporaryDirectory(prefix="soakwatch-", dir=_worker().local_directory) as folder:
        for expected, parts in zip(sums, pieces, strict=True):
            if not written(place_of(Path(folder), expected.name), expected, parts):
                raise ClusterError(f"{expected.name} came to the worker {_worker().address} with other bytes")
        return _done(function, (*arguments, Path(folder)))


def piece(data: bytes) -> bytes:
    """Return a piece of a file: as a task, it brings the data to a worker."""
    return data


def work_into(payload: bytes, asked: Mapping[str, str], claim: str) -> Written | GivenBack:
    """Run a job that writes files, unless it was begun before, which the event ``claim`` at the scheduler tells."""
    function, arguments = _job(payload, asked)
    event = _event(claim)
    if event.is_set():
        return GivenBack()
    event.set()
    worker = _worker()
    place = Path(tempfile.mkdtemp(prefix="soakwatch-", dir=worker.local_directory), "run")
    result: object = None
    failure: Exception | None = None
    try:
        result = _done(function, (*arguments, place), _event(f"{claim}{END}"))
    except Exception as error:  # noqa: BLE001 - the error is sent to the submitter after its files
        failure = error
    return Written(worker.address, str(place), sums_below(place), result, failure)


def read_piece(file: str, begin: int, length: int) -> bytes:
    """A part of a file on this worker. Called alongside its jobs."""
    with Path(file).open("rb") as opened:
        opened.seek(begin)
        return opened.read(length)


def forget(place: str) -> None:
    """Delete files that have been fetched."""
    shutil.rmtree(Path(place).parent, ignore_errors=True)


def _job(payload: bytes, asked: Mapping[str, str]) -> tuple[Callable[..., object], tuple[object, ...]]:
    sentence = differing(asked, versions(), _worker().address)
    if sentence:
        raise ClusterError(sentence)
    try:
        return cast("tuple[Callable[..., object], tuple[object, ...]]", pickle.loads(payload))  # noqa: S301 - as dask itself
    except (ImportError, AttributeError) as error:
        raise ClusterError(f"the worker {_worker().address} does not have what the job needs: {error}") from None


def _done(function: Callable[..., object], arguments: tuple[object, ...], end: _Flag | None = None) -> object:
    worker = _worker()
    key = worker.get_current_task()
    next_s, ended = 0.0, False

    def wanted() -> bool:
        nonlocal next_s, ended
        task = worker.state.tasks.get(key)
        if task is None or task.state != _RUNNING:
            return False
        if end is not None and not ended and time.monotonic() >= next_s:
            ended = end.is_set()
            next_s = time.monotonic() + _ASK_S
        return not ended

    token = WANTED.set(wanted)
    try:
        return function(*arguments)
    finally:
        WANTED.reset(token)


def _event(name: str) -> _Flag:
    return cast("_Flag", importlib.import_module("distributed").Event(name))


def _worker() -> _Worker:
    return cast("_Worker", importlib.import_module("distributed").get_worker())
