"""When a run begins: a time of the calendar, or the next one that cron names."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch.core.errors import PlanError
from soakwatch.plan import Plan, plan_from_text, plan_text
from soakwatch.plan.start_plan import Start
from soakwatch.record import RecordView

FRIDAY = datetime(2026, 11, 27, 19, 30, tzinfo=UTC)


def plan(start: str) -> Plan:
    """A plan that begins then."""
    return plan_from_text(f"name: a\nduration: 2s\nstart: {start}\ntargets: {{a: {{sources: [local]}}}}\n", "p.yaml")


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("2026-11-27T20:00:00Z", "2026-11-27T20:00"),
        ("0 20 * * mon-fri UTC", "2026-11-27T20:00"),
        ("'0 20 * * mon-fri Europe/Berlin'", "2026-11-30T19:00"),  # 20:00 has passed in Berlin, and a weekend follows
        ("'0 20 * * 1-5 Europe/Berlin'", "2026-11-30T19:00"),
        ("'30 6 1 * * America/New_York'", "2026-12-01T11:30"),
        ("'@daily UTC'", "2026-11-28T00:00"),
    ],
)
def test_the_next_time(text: str, then: str) -> None:
    """A time of the calendar stays; cron names the next one, in its zone."""
    start = plan(text).start
    assert start is not None
    assert start.next(FRIDAY) == datetime.fromisoformat(f"{then}:00Z")


def test_a_record_keeps_the_words() -> None:
    """Read again, at any time, it is the same plan."""
    first = plan("'0 20 * * mon-fri Europe/Berlin'")
    assert first.start == Start(cron="0 20 * * mon-fri", zone="Europe/Berlin")
    assert plan_from_text(plan_text(first), "record") == first


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("'0 25 * * *'", "'0 25 * * *' is not a schedule"),
        ("'0 20 * * mon-fri Europe/Nowhere'", "'Europe/Nowhere' is not a time zone: write one such as Europe/Vienna"),
        ("'0 20 30 2 * UTC'", "the schedule '0 20 30 2 *' never comes: there is no such day"),
        ("'0 20 1 * mon UTC'", "leave one of them as *"),
        ("'0 20 * *'", "is neither an ISO 8601 time nor one of cron: write date, time and zone, such as"),
        ("tomorrow", "'tomorrow' is neither an ISO 8601 time nor one of cron"),
        ("2026-11-27T20:00:00", "has no zone: append Z for UTC"),
        ("20", "expected a time, found the number 20"),
    ],
)
def test_what_is_no_start(text: str, says: str) -> None:
    """One sentence, with the place and the remedy."""
    with pytest.raises(PlanError) as failure:
        plan(text)
    assert "p.yaml:3:8: start: " in str(failure.value)
    assert says in str(failure.value)


def test_check_tells_the_next_time_and_its_zone(tmp_path: Path) -> None:
    """Once with the zone that the plan names, once with that of the machine."""
    for text, zone in (
        ("'0 20 * * mon-fri Europe/Berlin'", "Europe/Berlin"),
        ("0 20 * * mon-fri", "Asia/Tokyo, the zo"),
    ):
        (tmp_path / "plan.yaml").write_text(f"duration: 2s\nstart: {text}\ntargets: {{a: {{sources: [local]}}}}\n")
        done = command_in(tmp_path, TZ="Asia/Tokyo")("check", "plan.yaml", "--no-connect")
        (line,) = (each for each in done.stdout.splitlines() if ", from " in each)
        assert f"UTC, the next time of '0 20 * * mon-fri' in {zone}" in line, done.stdout + done.stderr
        assert ":00:00 UTC" in line


@pytest.mark.slow
def test_a_run_waits_for_it(tmp_path: Path) -> None:
    """It begins with the minute, and not before."""
    (tmp_path / "plan.yaml").write_text("duration: 1s\nstart: '* * * * * UTC'\ntargets: {a: {sources: [local]}}\n")
    began_s = time.time()
    done = command_in(tmp_path)("run", "plan.yaml", "--runs", "runs", "--no-web")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with RecordView.open(run) as view:
        start_s = int(view.metas()["start_ns"]) * 1e-9
    assert start_s % 60 == pytest.approx(0, abs=0.01)
    assert began_s < start_s <= began_s + 65
