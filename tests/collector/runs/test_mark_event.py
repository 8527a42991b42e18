"""What can be recorded of an event, whoever reports it; and `soakwatch event`, which only hands it on."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import pytest

from soakwatch.record import Record, RecordView
from soakwatch.runs import mark_event as marking
from soakwatch.runs.mark_event import (
    MAX_LABELS,
    EventConflictError,
    EventRefusedError,
    EventRequest,
    moment,
    moment_text,
    record_event,
)
from soakwatch_model.event import Event

T = TypeVar("T")
SECOND = 10**9
DEEDS: tuple[Literal["mark", "begin", "end"], ...] = ("mark", "begin", "end")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def now() -> int:
    return time.time_ns()


def test_a_moment_a_stretch_and_an_open_event_are_kept(run: Path) -> None:
    """Every way to tell an event leaves it in the record as it was reported."""
    now_ns = now()
    event = record_event(run, EventRequest("mark", "config", target="dut", labels={"ticket": "4711"}), now_ns).event
    assert event == Event("config", "dut", "", now_ns, now_ns, {"ticket": "4711"})
    record_event(
        run, EventRequest("mark", "flap", now_ns - 20 * SECOND, now_ns - 10 * SECOND, object="interface=eth0"), now_ns
    )
    record_event(run, EventRequest("begin", "upgrade", expect={"reboot": 1}, within_s=600), now_ns)
    ended = record_event(run, EventRequest("end", "upgrade", labels={"result": "done"}), now_ns + 5 * SECOND)
    with RecordView.open(run) as view:
        kept = {stored.event.kind: stored for stored in view.events()}
    assert kept["upgrade"] == ended
    assert kept["upgrade"].origin == "user"
    assert kept["upgrade"].event == Event(
        "upgrade", "", "", now_ns, now_ns + 5 * SECOND, {"result": "done"}, {"reboot": 1}, now_ns + 600 * SECOND
    )
    assert kept["flap"].event.end_ns == now_ns - 10 * SECOND


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (EventRequest("mark", ""), "is not a kind of event"),
        (EventRequest("mark", "Fail Over"), "write a lower-case word such as failover"),
        (EventRequest("mark", "x" * 65), "is not a kind of event"),
        (EventRequest("mark", "gap"), "reserved for the run"),
        (EventRequest("begin", "phase.turn"), "reserved for the run"),
        (EventRequest("mark", "failover", target="dux"), "no target 'dux'; did you mean 'dut'?"),
        (EventRequest("mark", "failover", object="a\nb"), "object is one line"),
        (EventRequest("mark", "failover", object="x" * 1001), "1000 characters at most"),
        (EventRequest("mark", "failover", labels={"a": "\ud800"}), "a is one line of printable text"),
        (EventRequest("mark", "failover", labels={"": "b"}), "cannot name a label"),
        (EventRequest("mark", "failover", labels={str(n): "" for n in range(MAX_LABELS + 1)}), "too many"),
        (EventRequest("mark", "failover", expect={"Reboot": 1}), "expect: 'Reboot' is not a kind of event"),
        (EventRequest("mark", "failover", expect={"reboot": -1}), "a number of times from 0"),
        (EventRequest("mark", "failover", expect={"reboot": 10**9}), "a number of times from 0"),
        (EventRequest("mark", "failover", within_s=0), "within is the time from its start"),
        (EventRequest("mark", "failover", within_s=float("nan")), "within is the time from its start"),
        (EventRequest("mark", "failover", within_s=1e300), "within is the time from its start"),
        (EventRequest("end", "failover", expect={"reboot": 1}), "belong to the start"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(run: Path, ask: EventRequest, sentence: str) -> None:
    """Nothing of it reaches the record."""
    with pytest.raises(EventRefusedError) as refused:
        record_event(run, ask, now())
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    with RecordView.open(run) as view:
        assert view.events() == ()


def test_future_events_are_planned_and_not_recorded(run: Path) -> None:
    """Clocks may be a minute apart; further ahead nobody can tell of anything, neither of a begin nor of an end."""
    now_ns = now()
    assert (
        record_event(run, EventRequest("mark", "early", now_ns + 50 * SECOND), now_ns).event.begin_ns
        == now_ns + 50 * SECOND
    )
    for ask in (
        EventRequest("mark", "failover", now_ns + 3700 * SECOND),
        EventRequest("begin", "failover", now_ns + 3700 * SECOND),
        EventRequest("mark", "failover", now_ns, now_ns + 3700 * SECOND),
    ):
        with pytest.raises(EventRefusedError, match=r"in the future: .* the plan's events"):
            record_event(run, ask, now_ns)
    record_event(run, EventRequest("begin", "failover"), now_ns)
    with pytest.raises(EventRefusedError, match="in the future"):
        record_event(run, EventRequest("end", "failover", now_ns + 3700 * SECOND), now_ns)


def test_what_was_before_the_run_or_after_it_is_no_part_of_it(recorded: Callable[..., Path]) -> None:
    """The sentence says when the run was."""
    over, now_ns = recorded("over", ended=True), now()
    with pytest.raises(EventRefusedError, match=r"1 h 50 min before the run started, \d{4}-"):
        record_event(over, EventRequest("mark", "failover", now_ns - 7200 * SECOND), now_ns)
    with pytest.raises(EventRefusedError, match=r"the run ended at .*, 1 h before: say when the failover happened"):
        record_event(over, EventRequest("mark", "failover"), now_ns + 3600 * SECOND)
    assert record_event(over, EventRequest("mark", "failover", now_ns - 300 * SECOND), now_ns + 3600 * SECOND).id
    with pytest.raises(EventRefusedError, match="would end 1 s before it starts"):
        record_event(over, EventRequest("mark", "upgrade", now_ns - 5 * SECOND, now_ns - 6 * SECOND), now_ns)


def test_two_events_of_one_kind_cannot_overlap(run: Path) -> None:
    """Neither open ones nor those that are over; of another kind, target or object they can, and edge to edge."""
    now_ns = now()
    record_event(run, EventRequest("begin", "failover", target="dut"), now_ns)
    with pytest.raises(EventConflictError, match=r"overlaps with the failover on dut that started at .* is still open"):
        record_event(run, EventRequest("begin", "failover", target="dut"), now_ns + 1)
    for other in (
        EventRequest("begin", "failover"),
        EventRequest("begin", "upgrade", target="dut"),
        EventRequest("begin", "failover", target="dut", object="interface=eth0"),
    ):
        record_event(run, other, now_ns + 1)
    with pytest.raises(EventRefusedError, match="it cannot end before"):
        record_event(run, EventRequest("end", "failover", now_ns - 9 * SECOND, target="dut"), now_ns + 9)
    record_event(run, EventRequest("end", "failover", now_ns + 10, target="dut"), now_ns + 10)
    with pytest.raises(EventConflictError, match="one of the two is wrong"):
        record_event(run, EventRequest("mark", "failover", now_ns + 5, target="dut"), now_ns + 20)
    with pytest.raises(EventConflictError, match="overlaps"):
        record_event(run, EventRequest("mark", "failover", now_ns - 5, now_ns + 20, target="dut"), now_ns + 20)
    record_event(run, EventRequest("mark", "failover", now_ns - 5, now_ns, target="dut"), now_ns + 20)
    record_event(run, EventRequest("begin", "failover", now_ns + 10, target="dut"), now_ns + 20)
    with pytest.raises(EventConflictError, match="no open event 'reload' on dut"):
        record_event(run, EventRequest("end", "reload", target="dut"), now_ns + 20)


def test_an_end_finds_the_one_open_event(run: Path) -> None:
    """Without a target it ends the only open event of the kind; of several it names each, and how to choose it."""
    now_ns = now()
    record_event(run, EventRequest("begin", "upgrade", target="dut"), now_ns)
    assert record_event(run, EventRequest("end", "upgrade"), now_ns + SECOND).event.target == "dut"
    record_event(run, EventRequest("begin", "upgrade", now_ns + 2 * SECOND, target="dut"), now_ns + 2 * SECOND)
    record_event(
        run, EventRequest("begin", "upgrade", now_ns + 3 * SECOND, target="dut", object="slot=2"), now_ns + 3 * SECOND
    )
    with pytest.raises(EventConflictError) as several:
        record_event(run, EventRequest("end", "upgrade"), now_ns + 4 * SECOND)
    assert str(several.value) == (
        f"2 events 'upgrade' are open: --target dut (started at {moment_text(now_ns + 2 * SECOND)}),"
        f" --target dut --object slot=2 (started at {moment_text(now_ns + 3 * SECOND)}): name target and object"
    )
    # a target by itself means the event of the target as a whole, where there is one
    assert record_event(run, EventRequest("end", "upgrade", target="dut"), now_ns + 5 * SECOND).event.object == ""
    assert record_event(run, EventRequest("end", "upgrade"), now_ns + 6 * SECOND).event.object == "slot=2"
    with pytest.raises(EventConflictError, match=r"no open event 'upgrade': start one first"):
        record_event(run, EventRequest("end", "upgrade"), now_ns + 7 * SECOND)
    record_event(run, EventRequest("begin", "failover", now_ns + 7 * SECOND), now_ns + 7 * SECOND)
    with pytest.raises(EventConflictError, match=r"no open event 'failovr'; open: failover$"):
        record_event(run, EventRequest("end", "failovr"), now_ns + 8 * SECOND)


def test_a_planned_intent_is_not_announced_twice(run: Path) -> None:
    """What the plan expects of an event is expected once; the event itself can be reported beside it."""
    now_ns = now()
    with Record.open(run) as record:
        record.add_event(
            "dut", Event("failover", "dut", "", now_ns, None, {}, {"reboot": 1}, now_ns + 60 * SECOND), "plan"
        )
    with pytest.raises(EventConflictError, match=r"the planned failover on dut .* leave expect out"):
        record_event(run, EventRequest("begin", "failover", target="dut", expect={"reboot": 1}), now_ns + SECOND)
    record_event(run, EventRequest("begin", "failover", target="dut"), now_ns + SECOND)
    record_event(run, EventRequest("end", "failover", target="dut"), now_ns + 2 * SECOND)
    with RecordView.open(run) as view:
        assert [(stored.origin, stored.event.end_ns) for stored in view.events()] == [
            ("plan", None),
            ("user", now_ns + 2 * SECOND),
        ]


def test_of_many_who_begin_the_same_event_one_does(run: Path) -> None:
    """Looking and writing are one transaction: sixteen threads at once leave one open event."""
    now_ns, results = now(), []
    ready = threading.Barrier(16)

    def begin() -> None:
        ready.wait(30)
        try:
            results.append(record_event(run, EventRequest("begin", "failover"), now_ns).id)
        except EventConflictError:
            results.append(0)

    threads = [threading.Thread(target=begin) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert len(results) == 16
    assert sum(map(bool, results)) == 1


def test_a_script_that_lost_its_way_fills_no_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit to the events of a run; what is open can still be ended."""
    monkeypatch.setattr(marking, "MAX_EVENTS", 2)
    record_event(run, EventRequest("begin", "upgrade"), now())
    record_event(run, EventRequest("mark", "config"), now())
    with pytest.raises(EventRefusedError, match=r"event limit \(2\) reached"):
        record_event(run, EventRequest("mark", "failover"), now())
    assert record_event(run, EventRequest("end", "upgrade"), now()).event.end_ns


def test_an_event_of_a_run_that_ended_asks_for_another_judging(
    soakwatch: Command, recorded: Callable[..., Path]
) -> None:
    """The verdict that is there does not know of it."""
    recorded("over", ended=True)
    done = soakwatch("event", "last", "failover", "--at", moment_text(now() - 60 * SECOND))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "failover marked",
        "the run has ended: to judge it with this event, run 'soakwatch judge last'",
    ]


def test_anything_is_kept_or_refused(run: Path) -> None:
    """Seeded nonsense in every field: one sentence, or an event that reads back as it was reported."""
    chooser = random.Random(5)
    texts = ["", "x" * 2000, "a.b-c", "A", "ü", "\x00", "\ud800", "'; DROP TABLE event; --", "a\tb", "gap"]
    times = [0, -1, 2**63, now(), now() - 60 * SECOND, now() + 30 * SECOND]

    def some(good: T, bad: Sequence[T]) -> T:
        return good if chooser.random() < 0.8 else chooser.choice(bad)

    kept = 0
    for number in range(400):
        ask = EventRequest(
            some(DEEDS[0], DEEDS),
            some(f"e{number}", texts),
            some(None, times),
            some(None, times),
            some("dut", texts),
            some("", texts),
            {some("reboot", texts): some(1, (0, -1, 2**70))},
            some(None, (1.5, -1.0, float("inf"))),
            {some("a", texts): some("b", texts)},
        )
        try:
            stored = record_event(run, ask, now())
        except EventRefusedError as refused:
            sentence = str(refused)
        else:
            sentence, kept = "", kept + 1
            with RecordView.open(run) as view:
                assert stored in view.events()
        assert "\n" not in sentence
    assert 20 < kept < 380


@pytest.mark.parametrize(
    "text", ["", "now", "2026-11-21", "2026-11-21T20:15:00", "9999-12-31T23:59:59-23:00", "1", "x" * 99]
)
def test_a_time_needs_a_zone(text: str) -> None:
    """Whatever is no moment says so."""
    with pytest.raises(ValueError, match=r"ISO 8601|zone|calendar|1970"):
        moment(text)


def test_a_time_reads_back() -> None:
    """To the microsecond, in any zone."""
    assert moment("2026-11-21T21:15:00.25+01:00") == moment("2026-11-21T20:15:00.25Z")
    assert moment(moment_text(1_795_200_000_123_456_000)) == 1_795_200_000_123_456_000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere", "failover"), "nowhere is not a run"),
        (("last", "Failover"), "is not a kind of event"),
        (("last", "failover", "--at", "2031-01-01T00:00:00Z"), "in the future"),
        (("last", "failover", "--at", "2001-01-01T00:00:00Z"), "before the run started"),
        (("last", "failover", "--at", "yesterday"), "is not ISO 8601"),
        (("last", "failover", "--at", "2026-11-21T00:00:00"), "has no zone"),
        (("last", "failover", "--end"), "no open event 'failover'"),
        (("last", "failover", "--begin", "--until", "2026-11-21T00:00:00Z"), "--until is for an event that is over"),
        (("last", "failover", "--target", "moon"), "no target 'moon'"),
        (("last", "failover", "--expect", "reboot=many"), "expected a count"),
        (("last", "failover", "--expect", "reboot=1", "--expect", "reboot=2"), "given twice"),
        (("last", "failover", "--within", "5"), "write a number with a unit"),
        (("last", "failover", "--label", "ticket"), "not KEY=VALUE"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    soakwatch: Command, run: Path, words: tuple[str, ...], sentence: str
) -> None:
    """Exit 2 and one line; nothing is marked."""
    done = soakwatch("event", *words)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert sentence in done.stderr
    with RecordView.open(run) as view:
        assert view.events() == ()


def test_the_command_begins_ends_and_overlaps(soakwatch: Command, run: Path) -> None:
    """`soakwatch event RUN KIND --begin`, a second one, `--end`, and a stretch that is over."""
    began = soakwatch(
        "event", "last", "upgrade", "--begin", "--target", "dut", "--expect", "reboot=1", "--within", "10m"
    )
    assert (began.returncode, began.stdout) == (0, "upgrade started on dut\n")
    again = soakwatch("event", "last", "upgrade", "--begin", "--target", "dut")
    assert again.returncode == 2
    assert "still open: end that one first" in again.stderr
    ended = soakwatch("event", "last", "upgrade", "--end", "--label", "result=done")  # the pair of the help's example
    assert (ended.returncode, ended.stdout) == (0, "upgrade ended on dut\n")
    now_ns = now()
    stretch = [moment_text(now_ns - back * SECOND) for back in (100, 90)]
    over = soakwatch("event", run, "flap", "--at", stretch[0], "--until", stretch[1], "--object", "interface=eth0")
    assert (over.returncode, over.stdout) == (0, "flap marked\n")
    with RecordView.open(run) as view:
        kept = {stored.event.kind: stored.event for stored in view.events()}
    assert kept["upgrade"].detail == {"result": "done"}
    assert kept["upgrade"].expect == {"reboot": 1}
    assert kept["flap"].end_ns is not None
    assert kept["flap"].end_ns - kept["flap"].begin_ns == 10 * SECOND
