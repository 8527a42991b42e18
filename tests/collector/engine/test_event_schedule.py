"""When planned events happen: of the run or of a phase, again and again, and what is left out."""

from __future__ import annotations

from soakwatch.engine.event_schedule import SKIPPED, EventSchedule
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.plan import plan_from_text
from soakwatch_model.event import Event

S = 10**9
T0 = 1_700_000_000 * S


def phasing(text: str, begun: int) -> tuple[PhaseTimeline, EventSchedule]:
    """A plan of phases and events of which some phases have begun in time."""
    plan = plan_from_text(f"targets: {{dut: {{sources: [local]}}}}\n{text}", "p.yaml")
    phases = PhaseTimeline(plan.phases, T0)
    begins = [stretch.window.begin_ns for stretch in phases.stretches[:begun]]
    phases = PhaseTimeline(plan.phases, T0, begins)
    return phases, EventSchedule(plan.events, phases)


def happened(occurring: EventSchedule, now_s: float) -> list[tuple[str, float]]:
    """What is due up to a time, begun one after the other."""
    events = []
    while (due := occurring.due(T0 + round(now_s * S))) is not None:
        event = due.event()
        events.append((event.kind, (event.begin_ns - T0) / S))
        occurring.begun(due)
    return events


def test_an_event_comes_again_to_the_end_of_the_run() -> None:
    """``every`` goes on from ``at``, as long as the event would be over before the run is."""
    _, occurring = phasing("duration: 1h\nevents: [{kind: failover, at: 5m, every: 10m, within: 5m}]", 1)
    assert occurring.due_ns() == (T0 + 300 * S,)
    assert happened(occurring, 299) == []
    seen = [when for step in range(300, 3600, 5) for _, when in happened(occurring, step)]
    assert seen == [300.0, 900.0, 1500.0, 2100.0, 2700.0, 3300.0]
    assert occurring.due_ns() == ()


def test_events_of_a_phase_count_from_its_begin() -> None:
    """Each phase of that name has them, from when it really began, and to its end."""
    text = (
        "phases: [{baseline: 10m}, {stress: 10m}, {recovery: 5m}, {stress: 10m}]\n"
        "events: [{kind: flap, phase: stress, at: 1m, every: 4m}, {kind: reload, phase: recovery}]"
    )
    _, occurring = phasing(text, 1)
    assert [(ns - T0) / S for ns in occurring.due_ns()] == [660.0, 1200.0, 1560.0]
    assert happened(occurring, 599) == []
    _, occurring = phasing(text, 4)
    seen = [occurrence for step in range(600, 2100, 5) for occurrence in happened(occurring, step)]
    assert seen == [
        ("flap", 660.0),
        ("flap", 900.0),
        ("flap", 1140.0),
        ("reload", 1200.0),
        ("flap", 1560.0),
        ("flap", 1800.0),
        ("flap", 2040.0),
    ]
    early = PhaseTimeline(
        plan_from_text(f"targets: {{dut: {{sources: [local]}}}}\n{text}", "p").phases, T0, [T0, T0 + 60 * S]
    )
    plan = plan_from_text(f"targets: {{dut: {{sources: [local]}}}}\n{text}", "p")
    assert happened(EventSchedule(plan.events, early), 121) == [("flap", 120.0)]


def test_what_an_earlier_life_began_is_not_begun_again() -> None:
    """After a resume the events of the record are over; what was missed meanwhile is reported in one, and goes on."""
    text = "duration: 1h\nevents: [{kind: a, at: 10s, every: 10s, run: 'true'}, {kind: b, at: 30s}, {kind: b, at: 30s}]"
    phases, _ = phasing(text, 1)
    plan = plan_from_text(f"targets: {{dut: {{sources: [local]}}}}\n{text}", "p.yaml")
    recorded = [
        Event("a", "", "", T0 + 10 * S, None),
        Event("a", "", "", T0 + 20 * S, None),
        Event("b", "", "", T0 + 30 * S, None),
    ]
    occurring = EventSchedule(plan.events, phases, recorded)
    late = []
    while (due := occurring.due(T0 + 62 * S)) is not None:
        late.append(due.event())
        occurring.begun(due)
    assert [(e.kind, e.begin_ns - T0, e.detail.get("times")) for e in late] == [
        (SKIPPED, 30 * S, "3"),
        ("b", 30 * S, None),
        ("a", 60 * S, None),
    ]
    again = EventSchedule(plan.events, phases, [*recorded, *late])
    assert again.due(T0 + 62 * S) is None
    assert again.due_ns() == (T0 + 70 * S,)


def test_a_script_is_not_run_late_and_an_event_that_never_came_is_reported() -> None:
    """A single script whose time passed by more than three seconds is left out; one after an early end never comes."""
    text = (
        "phases: [{ramp: {for: 10m, until: settled}}, {soak: 10m}]\n"
        "events: [{kind: x, at: 5s, run: 'true'}, {kind: y, phase: ramp, at: 9m}]"
    )
    plan = plan_from_text(f"targets: {{dut: {{sources: [local]}}}}\n{text}", "p.yaml")
    phases = PhaseTimeline(plan.phases, T0, [T0, T0 + 120 * S])
    occurring = EventSchedule(plan.events, phases)
    due = occurring.due(T0 + 120 * S)
    assert due is not None
    event = due.event()
    assert (event.kind, dict(event.detail)) == (
        SKIPPED,
        {"event": "x", "reason": "its time had passed by more than 3 s"},
    )
    occurring.begun(due)
    assert occurring.due(T0 + 700 * S) is None
    assert [occurrence.planned.kind for occurrence in occurring.never()] == ["y"]
