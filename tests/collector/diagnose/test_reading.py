"""What looks show: each kind of growth by its name, and what is not decided with why."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collector.diagnose.made_looks import MIB, T0, course, lines, look

from soakwatch.diagnose.compare import difference, grown
from soakwatch.diagnose.look import Basis, Look, Runtime
from soakwatch.diagnose.reading import Course, Kind, Undecided, reading
from soakwatch.diagnose.wording import reading_words

RISING = [10 + n for n in range(100)]
FULL = [min(10 + n, 60) for n in range(100)]
EARLY = [min(10 + 5 * n, 60) for n in range(100)]


@pytest.mark.parametrize(
    ("looks", "memory", "kind"),
    [
        ([look(0, 10), look(4, 40)], RISING, Kind.LEAK),
        ([look(0, 10), look(2, 30), look(4, 50)], None, Kind.LEAK),
        ([look(0, 10), look(2, 40), look(4, 40.2)], FULL, Kind.BOUNDED),
        ([look(0, 10), look(4, 40)], FULL, Kind.BOUNDED),
        ([look(0, 10), look(2, 40), look(4, 40.2)], EARLY, Kind.WARM_UP),
        ([look(0, 20, 30, pieces=2), look(4, 20, 60, pieces=35)], RISING, Kind.FRAGMENTED),
        ([look(0, 20, 60, pieces=2), look(4, 20, 60, pieces=2)], FULL, Kind.RETAINED),
    ],
)
def test_a_growth_has_its_name(looks: list[Look], memory: list[float] | None, kind: Kind) -> None:
    """By the allocator's account first, then by whether it came to rest."""
    assert reading(looks, None if memory is None else course(memory)).kind is kind


def test_memory_that_follows_the_load_is_no_leak() -> None:
    """Up and down with it; a leak below the same load is one."""
    load = 5 + 4 * np.sin(np.linspace(0, 12, 200))
    follows, leaks = (
        course(list(20 + 3 * load), list(load)),
        course(list(20 + 3 * load + np.arange(200) * 0.3), list(load)),
    )
    looks = [look(0, 20), look(4, 30)]
    assert reading(looks, follows).kind is Kind.LOAD
    assert reading(looks, leaks).kind is Kind.LEAK


@pytest.mark.parametrize(
    ("looks", "why"),
    [
        ([look(0, 10)], Undecided.ONE_LOOK),
        ([look(0, 10), look(4, 40, start=8)], Undecided.RESTARTED),
        ([look(0, None), look(4, None)], Undecided.NO_ACCOUNT),
        ([look(0, 10), look(4, 10)], Undecided.NO_GROWTH),
    ],
)
def test_what_is_not_decided_has_its_reason(looks: list[Look], why: Undecided) -> None:
    """A typed reason, and a sentence of it."""
    read = reading(looks, None)
    assert (read.kind, read.why) == (Kind.UNDECIDED, why)
    assert reading_words(read).startswith("not decided: ")


def test_the_line_that_grew_is_the_suspect_and_a_full_cache_is_none() -> None:
    """Of a leak beside a busy cache the leak; what grew in a healthy program is not named."""
    before, after = (lines(held={"leak": n * MIB, "cache": 8 * MIB}) for n in (1, 31))
    read = reading([look(0, 10, sites=[before]), look(4, 40, sites=[after])])
    assert [(site.name, site.bytes, site.share) for site in read.sites] == [("leak", 30 * MIB, 1.0)]
    assert "most grew at leak (+30 MiB" in reading_words(read, Runtime.GO)
    healthy = reading([look(0, 10, sites=[before]), look(4, 40, sites=[after])], course(FULL))
    assert (healthy.kind, healthy.sites) == (Kind.BOUNDED, ())


def test_what_began_to_be_traced_at_a_look_is_compared_with_a_later_one() -> None:
    """A cache that renews itself since tracing began looks like growth between the first two looks only."""
    second, third = (
        lines("tracemalloc", basis=Basis.TRACED, since_ns=T0, held={"cache": 4 * MIB, "leak": n * MIB}) for n in (1, 9)
    )
    looks = [look(0, 10), look(2, 14, sites=[second]), look(4, 22, sites=[third])]
    assert [site.name for site in reading(looks).sites] == ["leak"]
    assert reading(looks[:2]).sites == ()


def test_samples_are_no_growth_until_they_are_sure() -> None:
    """One of 512 KiB is sampled: what one or two samples more show is chance."""
    grain = 512 << 10
    assert not grown([lines(grain=grain, held={"a": 8 * MIB})], [lines(grain=grain, held={"a": 10 * MIB})])
    assert grown([lines(grain=grain, held={"a": 8 * MIB})], [lines(grain=grain, held={"a": 40 * MIB})])


def test_a_difference_has_no_figure_that_a_look_lacks() -> None:
    """Missing is not zero."""
    apart = difference(look(0, None), look(1, 10))
    assert (apart.in_use, apart.held) == (None, None)
    assert apart.seconds == 3600


def test_a_course_of_few_readings_decides_nothing() -> None:
    """Nor does one that only falls."""
    assert reading([look(0, 10), look(4, 40)], course([10, 60, 60])).kind is Kind.LEAK
    falling = Course(np.arange(50.0), np.linspace(90, 10, 50) * MIB)
    assert reading([look(0, 10), look(4, 40)], falling).kind is Kind.LEAK
