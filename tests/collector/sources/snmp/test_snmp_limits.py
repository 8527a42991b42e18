"""What an agent was seen to take, and when its device is surveyed: transitions between values, without a network."""

from __future__ import annotations

import pytest

from soakwatch.sources.pollers.snmp import Look, Surveys
from soakwatch.sources.transport.snmp.request_limits import Limits, limits_at_first
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError, refused

OIDS = tuple(f"1.3.6.{number}" for number in range(1, 17))
LOST = SnmpPollError(FailureKind.NO_ANSWER, "x")
LARGE = SnmpPollError(FailureKind.TOO_LARGE, "x")
TOO_BIG = refused("x", 1, 0)
MINUTE_NS = 60 * 10**9


def at_first(*, switches: bool = True) -> Limits:
    """Limits of an agent that nothing is known of."""
    return limits_at_first(40, 20, switches=switches)


def test_what_is_too_big_is_halved_until_one_object_is_left_to_the_other_library() -> None:
    """16 objects, 8, then the one that is large: pysnmp is asked for it, and for nothing else."""
    limits, again = at_first().failed(OIDS, TOO_BIG, 0.0, alive=True)
    assert (limits.objects.now, again) == (8, [OIDS[:8], OIDS[8:]])
    limits, again = limits.failed(OIDS[:1], LARGE, 0.0, alive=True)
    assert (list(limits.beyond), again) == ([OIDS[0]], [OIDS[:1]])
    assert limits.objects.now == 40  # it was one object, not the amount
    assert limits.batches(OIDS, 0.0)[1] == [OIDS[1:], OIDS[:1]]
    limits, again = limits.failed(OIDS[:1], TOO_BIG, 0.0, alive=True)
    assert (dict(limits.refused), again) == ({OIDS[0]: "its value is too large for an answer"}, [])


def test_a_value_that_became_small_goes_back_to_the_fast_library() -> None:
    """And stays with the other one while it is long."""
    limits, _ = at_first().failed(OIDS[:1], LARGE, 0.0, alive=True)
    assert limits.answered(OIDS[:1], {OIDS[0]: b"x" * 3000}).beyond
    assert limits.answered(OIDS[:1], {OIDS[0]: b"x"}).beyond == frozenset()


def test_where_the_plan_names_pysnmp_there_is_no_other_library() -> None:
    """What it cannot read is refused, or fails the walk."""
    limits, again = at_first(switches=False).failed(OIDS[:1], LARGE, 0.0, alive=True)
    assert (list(limits.refused), again) == ([OIDS[0]], [])
    with pytest.raises(SnmpPollError):
        at_first(switches=False).lighter(OIDS[0], 1, LARGE, 0.0, alive=True)


def test_a_refusal_ends_when_the_object_is_answered() -> None:
    """genErr names its object; the answer later takes it back."""
    limits, again = at_first().failed(OIDS, refused("x", 5, 2), 0.0, alive=True)
    assert (dict(limits.refused), again) == ({OIDS[1]: "genErr"}, [(OIDS[0], *OIDS[2:])])
    assert limits.answered(OIDS[1:2], {OIDS[1]: 7}).refused == {}


def test_a_lost_request_is_halved_only_where_its_size_may_be_the_reason() -> None:
    """Not a small one, not one to an agent that never answered."""
    limits, again = at_first().failed(OIDS, LOST, 0.0, alive=True)
    assert (limits.objects.now, again) == (8, [OIDS[:8], OIDS[8:]])
    for batch, alive in ((OIDS[:8], True), (OIDS, False)):
        with pytest.raises(SnmpPollError):
            at_first().failed(batch, LOST, 0.0, alive=alive)


def test_a_column_that_is_too_large_is_asked_for_with_fewer_rows_and_others_are_not() -> None:
    """20 rows, 10, 5, 2, 1, then the other library."""
    limits, oid, asked = at_first(), OIDS[0], []
    while oid not in limits.beyond:
        asked.append(limits.rows(oid))
        limits = limits.lighter(oid, asked[-1], LARGE, 0.0, alive=True)
    assert asked == [20, 10, 5, 2, 1]
    assert (limits.rows(oid), limits.rows(OIDS[1])) == (20, 20)
    assert at_first().lighter(oid, 20, LOST, 0.0, alive=True).rows(OIDS[1]) == 10


def test_a_device_that_restarted_is_surveyed_at_once_and_when_its_tables_are_full() -> None:
    """70 s after it began, and once more after 70 s where that survey failed."""
    surveys = Surveys().born(0, 5000.0, seen=False).made(0, None)
    assert surveys.due(MINUTE_NS)[1] is None
    surveys = surveys.born(MINUTE_NS, 1.0, seen=True)
    assert not surveys.fresh
    surveys = surveys.made(MINUTE_NS, None)
    assert surveys.due(2 * MINUTE_NS)[1] is None
    surveys, look = surveys.due(3 * MINUTE_NS)
    assert look is Look.SETTLED
    assert surveys.due(4 * MINUTE_NS)[1] is None
    assert surveys.due(5 * MINUTE_NS)[1] is Look.SETTLED
    assert surveys.made(5 * MINUTE_NS, Look.SETTLED).grown_ns is None


def test_a_device_is_surveyed_afresh_after_nine_minutes_and_when_its_counters_are_filled() -> None:
    """And not at every poll that was too slow."""
    surveys = Surveys().made(0, None)
    assert surveys.due(9 * MINUTE_NS)[1] is None
    assert surveys.due(9 * MINUTE_NS + 1)[1] is Look.AFRESH
    assert Surveys().made(10 * MINUTE_NS, None).aged(1.0).aged(7.0).due(10 * MINUTE_NS)[1] is Look.AFRESH
    assert [surveys.too_slow(now_ns).fresh for now_ns in (MINUTE_NS - 1, MINUTE_NS)] == [True, False]
