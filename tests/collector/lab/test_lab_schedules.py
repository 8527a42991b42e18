"""Schedules: cron as cron has it, times of the calendar, and times that passed while no server ran."""

from __future__ import annotations

from typing import NoReturn
from zoneinfo import ZoneInfoNotFoundError

import pytest
from tests.collector.lab.conftest import ANNA, BERT, LabOf, Work

from soakwatch.core.cron import local_zone, next_time
from soakwatch.lab.lab_model import ConflictError, JobState, LabError, Order, UnknownError
from soakwatch.runs.mark_event import moment, moment_text

MINUTE, HOUR, DAY = 60 * 10**9, 3600 * 10**9, 86400 * 10**9


def at(text: str) -> int:
    """A time of the tests' week: the 29th of November 2026 is a Sunday."""
    return moment(f"{text}:00Z")


@pytest.mark.parametrize(
    ("cron", "zone", "after", "then"),
    [
        ("0 20 * * mon-fri", "UTC", "2026-11-29T12:00", "2026-11-30T20:00"),
        ("0 20 * * 1-5", "UTC", "2026-11-29T12:00", "2026-11-30T20:00"),
        ("0 20 * * 0", "UTC", "2026-11-28T12:00", "2026-11-29T20:00"),
        ("0 20 * * 7", "UTC", "2026-11-28T12:00", "2026-11-29T20:00"),
        ("0 20 * * sun", "UTC", "2026-11-28T12:00", "2026-11-29T20:00"),
        ("0 20 * * 6-1", "UTC", "2026-11-27T12:00", "2026-11-28T20:00"),
        ("0 20 * * */2", "UTC", "2026-11-30T12:00", "2026-12-01T20:00"),
        ("*/15 * * * *", "UTC", "2026-11-29T12:00", "2026-11-29T12:15"),
        ("0 20 1 * *", "UTC", "2026-11-29T12:00", "2026-12-01T20:00"),
        ("@daily", "UTC", "2026-11-29T12:00", "2026-11-30T00:00"),
        ("0 20 * * *", "Europe/Vienna", "2026-11-29T12:00", "2026-11-29T19:00"),
        ("0 20 * * *", "Europe/Vienna", "2026-07-01T12:00", "2026-07-01T18:00"),
        ("30 2 * * *", "Europe/Vienna", "2027-03-27T12:00", "2027-03-28T01:30"),  # clocks skip 02:30 on that day
    ],
)
def test_when_a_schedule_comes(cron: str, zone: str, after: str, then: str) -> None:
    """0 and 7 are Sunday, and the night in which the clocks change has its run."""
    found = next_time(cron, zone, at(after))
    assert found is not None
    assert moment_text(found)[:16] == then


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 20 * *", "UTC", "write minute hour day month weekday, such as '0 20 * * mon-fri'"),
        ("0 25 * * *", "UTC", "is not a schedule"),
        ("0 20 * * moonday", "UTC", "no day of the week: moonday"),
        ("0 20 * * 8", "UTC", "no day of the week: 8"),
        ("0 20 1 * mon", "UTC", "leave one of them as *, and make two schedules if both are meant"),
        ("0 20 30 2 *", "UTC", "never comes"),
        ("0 20 * * *", "Europe/Nowhere", "is not a time zone: write one such as Europe/Vienna, or UTC"),
    ],
)
def test_what_is_no_schedule_is_refused(server: LabOf, cron: str, zone: str, words: str) -> None:
    with pytest.raises(LabError) as refused:
        server().lab.schedule(Order("a.yaml"), ANNA, cron_text=cron, zone=zone)
    assert words in str(refused.value)


def test_a_machine_without_time_zones_has_utc(server: LabOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small container, say: another zone is refused with what to install."""

    def none(name: str) -> NoReturn:
        raise ZoneInfoNotFoundError(name)

    monkeypatch.setattr("soakwatch.core.cron.ZoneInfo", none)
    monkeypatch.setattr("soakwatch.core.cron.available_timezones", set)
    assert local_zone() == "UTC"
    work = server()
    assert work.lab.schedule(Order("a.yaml"), ANNA, cron_text="@daily").zone == "UTC"
    with pytest.raises(LabError, match="install tzdata there, or write UTC"):
        work.lab.schedule(Order("a.yaml"), ANNA, cron_text="@daily", zone="Europe/Vienna")


def jobs(work: Work) -> list[int]:
    """All jobs that there ever were."""
    return sorted(job.id for state in JobState for job in work.lab.store.jobs(state))


def test_a_schedule_queues_its_plan_each_time_once(server: LabOf) -> None:
    """With the labels that it was made with, in the name of who made it."""
    work = server()
    made = work.lab.schedule(Order("a.yaml", {"release": "7.2"}), ANNA, cron_text="0 13 * * *", zone="UTC")
    work.step()
    work.clock[0] += HOUR
    work.step(1)
    work.step(1)
    job = work.lab.job(1)
    assert (job.user, job.order.labels, job.due_ns) == (ANNA, {"release": "7.2"}, at("2026-11-29T13:00"))
    work.ends(1, 0)
    work.clock[0] += DAY
    work.step(2)
    assert work.lab.one_schedule(made.id).last_job == 2
    assert jobs(work) == [1, 2]


def test_a_time_of_the_calendar_comes_once(server: LabOf) -> None:
    work = server()
    made = work.lab.schedule(Order("a.yaml"), ANNA, at_ns=at("2026-11-29T20:00"))
    work.clock[0] = at("2026-11-29T20:00")
    work.step(1)
    work.clock[0] += 2 * DAY
    work.step(1)
    assert (work.lab.one_schedule(made.id).enabled, jobs(work)) == (False, [1])
    with pytest.raises(ConflictError, match="the time of schedule s1 has passed"):
        work.lab.enable(made.id, ANNA, on=True)
    with pytest.raises(LabError, match="has passed 24 h ago"):
        work.lab.schedule(Order("a.yaml"), ANNA, at_ns=work.clock[0] - DAY)


def test_times_that_passed_while_no_server_ran_are_said_and_not_run(server: LabOf) -> None:
    """All of them are counted, the next one comes as planned."""
    work = server()
    made = work.lab.schedule(Order("a.yaml"), ANNA, cron_text="0 20 * * *", zone="UTC")
    once = work.lab.schedule(Order("b.yaml"), ANNA, at_ns=at("2026-11-30T08:00"))
    work.clock[0] = at("2026-12-02T12:00")
    work = server()
    work.step()
    after, gone = work.lab.one_schedule(made.id), work.lab.one_schedule(once.id)
    assert [moment_text(time_ns)[:16] for time_ns in after.missed] == [
        f"2026-1{day}T20:00" for day in ("1-29", "1-30", "2-01")
    ]
    assert (after.missed_count, after.enabled, gone.enabled, gone.missed_count) == (3, True, False, 1)
    told = [entry for entry in work.all_audit() if entry.action == "missed"]
    assert told[0].words == "2026-11-29T20:00Z, 2026-11-30T20:00Z, 2026-12-01T20:00Z: no server was running"
    work.clock[0] = at("2026-12-02T20:00")
    work.step(1)
    assert jobs(work) == [1]


def test_a_time_that_passed_just_now_is_made_up_for(server: LabOf) -> None:
    """A server that was started again within ten minutes runs it late, and once."""
    work = server()
    work.lab.schedule(Order("a.yaml"), ANNA, cron_text="0 20 * * *", zone="UTC")
    work.clock[0] = at("2026-11-29T20:09")
    work = server()
    work.step(1)
    (due,) = [entry for entry in work.all_audit() if entry.action == "due"]
    assert due.words == "of schedule s1, 2026-11-29T20:00Z, 9 min late"
    work = server()
    work.step(1)
    assert (jobs(work), work.lab.one_schedule(1).missed_count) == ([1], 0)


def test_a_time_is_never_queued_twice(server: LabOf) -> None:
    """Not even by a server that forgot that it had come: the file keeps one job for each time of a schedule."""
    work = server()
    made = work.lab.schedule(Order("a.yaml"), ANNA, cron_text="0 20 * * *", zone="UTC")
    work.clock[0] = at("2026-11-29T20:00")
    work.step(1)
    work.lab.store.put_schedule(made)
    work.step(1)
    assert jobs(work) == [1]


def test_a_disabled_schedule_leaves_its_times_out(server: LabOf) -> None:
    work = server()
    made = work.lab.schedule(Order("a.yaml"), ANNA, cron_text="0 20 * * *", zone="UTC")
    assert work.lab.enable(made.id, BERT, on=False).next_ns is None
    work.clock[0] = at("2026-11-30T12:00")
    work.step()
    again = work.lab.enable(made.id, BERT, on=True)
    assert (again.next_ns, again.missed_count) == (at("2026-11-30T20:00"), 0)
    assert work.lab.start_now(made.id, BERT).user == BERT
    work.lab.remove(made.id, BERT)
    with pytest.raises(UnknownError, match="there is no schedule s1"):
        work.lab.enable(made.id, BERT, on=True)
    actions = [action for name, action, _ in work.audit() if name == "bert"]
    assert actions == ["disable", "enable", "submit", "remove"]


def test_a_plan_that_is_gone_when_its_time_comes_is_said(server: LabOf) -> None:
    work = server()
    made = work.lab.schedule(Order("a.yaml"), ANNA, cron_text="0 20 * * *", zone="UTC")
    (work.lab.plans.path / "a.yaml").unlink()
    work.clock[0] = at("2026-11-29T20:00")
    work.step()
    after = work.lab.one_schedule(made.id)
    assert after.trouble.startswith("there is no plan 'a.yaml' in the plans folder")
    assert after.next_ns == at("2026-11-30T20:00")
