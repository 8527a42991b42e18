"""A new run whose plan cannot be used ends within seconds and leaves nothing; a device that is off does not end it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time_ns

import pytest
from tests.collector.engine.watched_run import UNTIL_OVER, acting, end_run, wait_for, wait_for_polls

from soakwatch.cli import main as cli
from soakwatch.core.errors import PlanError, RecordError
from soakwatch.engine.first_polls import GRACE_S, FirstPolls, PlanRefusedError
from soakwatch.engine.preflight import preflight
from soakwatch.engine.start import discard
from soakwatch.plan import load_plan
from soakwatch.record import RecordView
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.stop_run import stop_run
from soakwatch_model.sample import PollOutcome
from soakwatch_testing.ports import free_port
from soakwatch_testing.virtual import VirtualTime

WRONG = """
duration: 6s
targets:
  fw: {sources: [{snmp: {host: 127.0.0.1, port: 9, version: 2c, community: env:SOAKWATCH_X}}]}
  sw:
    sources:
      - ssh: {host: 127.0.0.1, os: cisco_as, user: soak, password: env:SOAKWATCH_X}
      - snmp: {host: 127.0.0.1, port: 9, version: 2c, community: env:COMMUNITY, profile: arista-eoss}
  me: {sources: [{local: {probes: [load], interval: 200ms, timeout: 10s}}]}
"""
OFF = """
duration: 4s
targets:
  fw: {sources: [{snmp: {host: 127.0.0.1, port: PORT, version: 2c, community: env:COMMUNITY, timeout: 1s}}]}
"""
SENTENCES = [
    "soakwatch: wrong.yaml:4:19: fw snmp: the environment variable SOAKWATCH_X is not set: export it before the run",
    "soakwatch: wrong.yaml:7:9: sw ssh: there is no os 'cisco_as'; did you mean 'cisco-asa'? (all: soakwatch profiles)",
    (
        "soakwatch: wrong.yaml:8:9: sw snmp: unknown profile 'arista-eoss'; did you mean 'arista-eos'?"
        " (all: soakwatch profiles)"
    ),
]


def in_seconds(ahead: float) -> str:
    """A start that lies so far ahead, as a plan writes it."""
    return (datetime.now(UTC) + timedelta(seconds=ahead)).isoformat(timespec="seconds")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the wrong plan in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMUNITY", "c0mmunity-of-the-lab")
    monkeypatch.delenv("SOAKWATCH_X", raising=False)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    return tmp_path


def test_a_wrong_plan_ends_a_new_run_at_once_with_every_sentence(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, one line a source with its place, in the plan's order; no report, and the run's folder is gone."""
    assert cli.run(["run", "wrong.yaml", "--no-web"]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines() == SENTENCES
    assert "was removed" in printed.out
    assert "judging" not in printed.out
    assert list((here / "runs").iterdir()) == []


def test_a_check_that_asks_no_device_refuses_what_is_not_installed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Place, nearest name, and where the list is; for each source whose os, profile or probe nobody has. A name that is
    there is no error, whether the device answers or not."""
    assert cli.run(["check", "--no-connect", "wrong.yaml"]) == 2
    assert capsys.readouterr().err.splitlines() == SENTENCES[1:]
    (here / "probe.yaml").write_text("targets: {me: {sources: [{local: {probes: [lod]}}]}}\nduration: 1s\n")
    assert cli.run(["check", "--no-connect", "probe.yaml"]) == 2
    assert "probe.yaml:1:27: me local: there is no probe 'lod'; did you mean 'load'?" in capsys.readouterr().err
    (here / "right.yaml").write_text(WRONG.replace("cisco_as", "cisco-asa").replace("arista-eoss", "arista-eos"))
    assert cli.run(["check", "--no-connect", "right.yaml"]) == 0


def test_a_campaign_whose_cell_names_an_unknown_profile_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The place is that of the value in the campaign's file, and the cell is named."""
    (here / "base.yaml").write_text(OFF.replace("PORT", "9"))
    matrix = "{kind: {set: targets.fw.sources.snmp.profile, values: [generic, arista-eoss]}}"
    (here / "both.yaml").write_text(f"plan: base.yaml\nmatrix: {matrix}\n")
    assert cli.run(["campaign", "plan", "both.yaml"]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("soakwatch: both.yaml:2:")
    assert "unknown profile 'arista-eoss'; did you mean 'arista-eos'? (all: soakwatch profiles)" in sentence
    assert sentence.endswith("(in the cell kind=arista-eoss)")


@pytest.mark.slow
def test_a_folder_that_was_named_is_kept_and_its_run_can_go_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --into nothing is removed. In a resumed run the same errors are failed polls: hours may be in its record."""
    (here / "wrong.yaml").write_text(WRONG.replace("duration: 6s", f"phases: {UNTIL_OVER}"))
    assert cli.run(["run", "wrong.yaml", "--into", "kept", "--no-web"]) == 2
    assert "kept contains the first seconds: remove it, or name another folder" in capsys.readouterr().out

    def acts() -> None:
        wait_for_polls(here / "kept", of="me")
        end_run(here / "kept")

    with acting(acts):
        assert cli.run(["resume", "kept"]) == 3
    assert "finished after " in capsys.readouterr().out
    with RecordView.open(here / "kept") as view:
        ledgers = {ledger.source: ledger for ledger in view.ledgers(view.window())}
        failed = ledgers["sw/ssh"]
        assert (failed.got, failed.lost[PollOutcome.FAILED.value] > 0) == (0, True)
        assert "there is no os 'cisco_as'" in str(failed.errors)
        assert ledgers["me/local"].got > 3


def test_a_device_that_is_off_is_a_failing_source_of_a_whole_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its run goes on to the end, and a run of its full length has not ended early, whoever answered."""
    (here / "off.yaml").write_text(OFF.replace("PORT", str(free_port())))
    assert cli.run(["run", "off.yaml", "--no-web"]) == 3
    printed = capsys.readouterr().out
    assert "finished after 4 s" in printed
    assert "the port is closed" in printed
    assert "ended early" not in printed


def test_a_wrong_plan_for_tonight_is_refused_when_the_command_is_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who gives the command mends the plan, and does not find it refused in the morning; nothing is made."""
    (here / "wrong.yaml").write_text(WRONG + f"start: {in_seconds(36_000)}\n")
    assert cli.run(["run", "wrong.yaml", "--no-web"]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines() == SENTENCES
    assert "waiting" not in printed.out
    assert not (here / "runs").exists()


def test_a_device_that_is_off_before_the_start_is_a_warning(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be switched on until then: the run says so in a line and waits, here until it is stopped; a command of a
    load is not started."""
    off = OFF.replace("PORT", str(free_port())).replace("4s", "1s")
    load = f"  gen: {{role: generator, sources: [{{command: {{run: [touch, {here / 'started'}]}}}}]}}\n"
    (here / "off.yaml").write_text(f"{off}{load}start: {in_seconds(36_000)}\n")
    (sentence,) = preflight(load_plan(Path("off.yaml")), time_ns())
    assert sentence.startswith("off.yaml:4:")
    assert "fw" in sentence
    assert "the port is closed" in sentence
    assert not (here / "started").exists()
    (here / "off.yaml").write_text(f"{off}start: {in_seconds(36_000)}\n")
    reader = StateReader(here / "run")

    def waits() -> bool:
        with suppress(RecordError):
            return reader.read(time_ns()).standing == "waiting"
        return False

    def acts() -> None:
        wait_for(waits, "the run that waits for its start")
        stop_run(here / "run", reader.read(time_ns()), "seen", "test")

    with acting(acts):
        assert cli.run(["run", "off.yaml", "--into", "run", "--no-web"]) == 3
    printed = capsys.readouterr()
    assert [line for line in printed.err.splitlines() if line.startswith("soakwatch: warning: off.yaml:4:")]
    assert "waiting for the start at" in printed.out


def test_only_the_record_is_removed(tmp_path: Path) -> None:
    """A folder with anything else in it stays as it is, whole; and no folder is no trouble."""
    run = tmp_path / "run"
    run.mkdir()
    for name in ("record.sqlite", "record.sqlite-wal", "record.lock", "notes.txt"):
        (run / name).write_text("x")
    assert not discard(run)
    assert len(list(run.iterdir())) == 4
    (run / "notes.txt").unlink()
    assert discard(run)
    assert not run.exists()
    assert not discard(run)


def test_a_source_that_hangs_does_not_keep_the_sentences_of_the_others(here: Path) -> None:
    """All sources are waited for, but for one that takes its time the run does not."""
    plan = load_plan(here / "wrong.yaml")
    (fw,), (ssh, _) = (target.sources for target in plan.targets[:2])
    time = VirtualTime()

    async def main() -> tuple[float, float]:
        begin_ns = time.now_ns()
        opening = FirstPolls()
        first, second, hangs = (opening.expect(name, "snmp", fw) for name in ("a", "b", "c"))
        waiting = asyncio.create_task(opening.refused())
        await asyncio.sleep(5)
        assert not waiting.done()
        opening.check()
        second(PlanError("one", "two"))
        await asyncio.sleep(1)
        first(PlanError("a: three"))
        await waiting
        with pytest.raises(PlanRefusedError) as refused:
            opening.check()
        assert [problem.partition(": ")[2] for problem in refused.value.problems] == [
            "a snmp: three",
            "b snmp: one",
            "b snmp: two",
        ]
        late_s = (time.now_ns() - begin_ns) * 1e-9 - 5
        quick = FirstPolls()
        ends = [quick.expect(name, "ssh", ssh) for name in ("a", "b")]
        ends[0](PlanError("one"))
        ends[1](None)
        begin_ns = time.now_ns()
        await quick.refused()
        hangs(None)
        return late_s, (time.now_ns() - begin_ns) * 1e-9

    late_s, quick_s = time.run(main())
    assert late_s == pytest.approx(GRACE_S)
    assert quick_s == 0


GENERATOR = """
duration: 3s
targets:
  me: {sources: [{local: {probes: [load], interval: 200ms, timeout: 10s}}]}
  tg: {role: generator, sources: [{prometheus: {url: "http://127.0.0.1:PORT/metrics", timeout: 500ms, REQUIRED}}]}
"""


@pytest.mark.parametrize(("required", "code"), [("required: true", 2), ("required: false", 3)])
def test_a_generator_that_cannot_be_reached_ends_a_new_run(
    here: Path, capsys: pytest.CaptureFixture[str], required: str, code: int
) -> None:
    """Nobody would know what the device stood; a plan that says so goes on without it."""
    plan = GENERATOR.replace("PORT", str(free_port())).replace("REQUIRED", required)
    (here / "plan.yaml").write_text(plan)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "plan.yaml", "--into", "run", "--no-web"])
    ends = capsys.readouterr()
    assert ended.value.code == code
    if code == 2:
        assert "plan.yaml:5:" in ends.err
        assert "tg prometheus" in ends.err
        assert "start the generator, or give this source required: false" in ends.err
        assert "Traceback" not in ends.err
