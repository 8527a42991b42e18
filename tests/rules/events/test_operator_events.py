"""operator_events: what was done, reported once by each witness, and what a device says of the same."""

from __future__ import annotations

from soakwatch_model.event import Event
from soakwatch_rules.events.operator_events import operator_events

S = 10**9
LINE = {"line": "VRRP: instance 1 is master", "address": "192.0.2.9"}
TRAP = {"trap": "1.3.6.1.2.1.68.0.1", "address": "192.0.2.9"}


def event(at_s: float, detail: dict[str, str] | None = None, kind: str = "failover", **more: object) -> Event:
    """A failover, reported by someone."""
    return Event(kind, "dut", "", round(at_s * S), more.pop("end_ns", None), detail or {}, **more)  # type: ignore[arg-type]


def begins(*events: Event) -> list[float]:
    """When the operator events among them began, in seconds."""
    return [event.begin_ns / S for event in operator_events(events)]


def test_two_recorded_events_are_two_however_close() -> None:
    """Three cables pulled 12 s apart, with a label each and no intent; also if two of them have one."""
    reported = [event(12.0 * i, {"pulled": "ra"}, end_ns=round(12 * i * S)) for i in range(3)]
    assert begins(*reported) == [0, 12, 24]
    assert begins(reported[0], event(12, expect={"outage": 1})) == [0, 12]
    assert begins(event(5, {"line": "north"}), event(8, {"line": "south"})) == [5, 8], "a tester's label"


def test_an_event_of_the_device_belongs_to_the_nearest_recorded_event() -> None:
    """Each of two failovers 20 s apart has a line and a trap; none of them is an event of its own."""
    reported = [event(100, {"pulled": "ra"}), event(120, {"pulled": "rb"})]
    words = [event(101.5, LINE), event(102, TRAP), event(119, LINE), event(123, TRAP)]
    events = operator_events([*reported, *words])
    assert [(event.begin_ns / S, event.detail["pulled"]) for event in events] == [(100, "ra"), (119, "rb")]


def test_what_was_announced_stays_announced() -> None:
    """The log tells of it a second before: the begin is the log's, all else the plan's."""
    (operator_event,) = operator_events(
        [event(10, LINE), event(11, expect={"outage": 1}, deadline_ns=20 * S, end_ns=12 * S)]
    )
    assert (operator_event.begin_ns, operator_event.end_ns, operator_event.deadline_ns, operator_event.expect) == (
        10 * S,
        12 * S,
        20 * S,
        {"outage": 1},
    )


def test_words_alone_are_one_event_a_minute() -> None:
    """A device that tells of its failover for 50 s, and of another one after two minutes."""
    assert begins(*(event(index, LINE) for index in (0, 10, 50, 130, 140))) == [0, 130]
    assert begins(event(0), event(61, LINE)) == [0, 61]
    assert begins(event(0, kind="config"), event(1, LINE)) == [0, 1], "another kind"


def test_what_is_observed_is_not_an_operator_event() -> None:
    """Unless someone announced it."""
    assert begins(event(0, kind="process.restart"), event(1, kind="reboot")) == []
    assert begins(event(1, kind="reboot", expect={"reboot": 1})) == [1]
