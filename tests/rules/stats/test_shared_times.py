"""What follows from times alone is worked out once while times are shared, and never from times that may change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.shared_times import of_times, times_shared

Ints = NDArray[np.int64]


def _times(count: int, first: int = 0) -> Ints:
    times = np.arange(first, first + count, dtype=np.int64)
    times.flags.writeable = False
    return times


class Asked:
    """A function of times that counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0
        self.sums = of_times(self._sums)

    def _sums(self, times: Ints, factor: int) -> Ints:
        self.times += 1
        return times * factor


def test_the_same_times_are_asked_once_and_others_each() -> None:
    """The same place in memory, also of a part; another argument and other times are asked for by themselves."""
    asked, times = Asked(), _times(1000)
    with times_shared():
        first = asked.sums(times, 2)
        assert asked.sums(times[:], 2) is first
        assert asked.times == 1
        assert asked.sums(times, 3)[1] == 3
        assert asked.sums(times[1:], 2)[0] == 2
        assert asked.sums(times[::2], 2)[1] == 4
        assert asked.sums(_times(1000, 7), 2)[0] == 14
        assert asked.times == 5


def test_nothing_is_kept_of_times_that_may_be_written_or_afterwards() -> None:
    """What may change is asked again, and so is everything when the sharing has ended."""
    asked, open_, closed = Asked(), np.arange(10), _times(10)
    with times_shared():
        assert asked.sums(open_, 1)[0] == 0
        open_[0] = 5
        assert asked.sums(open_, 1)[0] == 5
        first = asked.sums(closed, 1)
    assert asked.sums(closed, 1) is not first
    with times_shared():
        assert asked.sums(closed, 1) is not first


def test_what_is_kept_has_a_bound() -> None:
    """Of many times only the last results stay, by their number and by their bytes; a place is not taken for another
    whose times are gone."""
    asked = Asked()
    with times_shared():
        small = [_times(8, number) for number in range(100)]
        for times in small:
            asked.sums(times, 1)
        assert asked.sums(small[0], 1)[0] == 0
        assert asked.times == 101
        for number in range(50):
            assert asked.sums(_times(200_000, number), 1)[0] == number  # each may lie where one before it lay
        assert asked.times == 151
