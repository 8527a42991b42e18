"""What follows from times alone is worked out once: series that were read together share theirs, by the hundred."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES: Final = 8 * 2**20
_MOST: Final = 64

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", NDArray[np.int64], NDArray[np.float64])
_Key = tuple[object, ...]
_KEPT: ContextVar[_Results | None] = ContextVar("soakwatch_made_of_times", default=None)


class _Results:
    """What was made last, up to a number of results and of bytes. The times of each stay where they are in memory."""

    def __init__(self) -> None:
        self._made: OrderedDict[_Key, tuple[object, object]] = OrderedDict()
        self._bytes = 0

    def get(self, key: _Key, times: object, make: Callable[[], R]) -> R:
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key][1]  # type: ignore[return-value]  # what the function of this key returned
        result = make()
        self._made[key] = times, result
        self._bytes += _size(result)
        while self._bytes > _MOST_BYTES or len(self._made) > _MOST:
            self._bytes -= _size(self._made.popitem(last=False)[1][1])
        return result


@contextmanager
def times_shared() -> Iterator[None]:
    """While it lasts, functions that are ``of_times`` keep their last results; at its end these are dropped."""
    token = _KEPT.set(_Results())
    try:
        yield
    finally:
        _KEPT.reset(token)


def of_times(make: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A function of times and of hashable arguments, which is asked once for the same times while these are shared.

    Times are the same if they lie in the same place of the memory and nobody may write them; others are never kept.
    Nor may anybody write an array that it returns.
    """

    @wraps(make)
    def once(times: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results = _KEPT.get()
        if results is None or times.flags.writeable:
            return make(times, *args, **kwargs)
        place = times.__array_interface__["data"][0]
        key = (make, place, times.shape, times.strides, times.dtype.char, args, tuple(kwargs.items()))
        return results.get(key, times, lambda: make(times, *args, **kwargs))

    return once


@of_times
def strictly_rising(times: NDArray[np.int64]) -> bool:
    """Whether each time is later than the one before it."""
    return bool((times[1:] > times[:-1]).all())


@of_times
def seconds_since(time_ns: NDArray[np.int64], begin_ns: int) -> NDArray[np.float64]:
    """Times in ns as seconds since ``begin_ns``; they cannot be written."""
    seconds = np.asarray((time_ns - begin_ns) * 1e-9, dtype=np.float64)
    seconds.flags.writeable = False
    return seconds


def _size(result: object) -> int:
    if isinstance(result, np.ndarray):
        return result.nbytes
    return sum(map(_size, result)) if isinstance(result, tuple) else 0
