"""A sealed record: every change of one value is told with its table and row, and what is allowed breaks nothing."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.reliability.changed_records import sealed_run

from soakwatch.core.errors import RecordError
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView, add_outside_event
from soakwatch.record.external_events import external_events
from soakwatch.record.seal import Checked
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_testing.records import SECOND, T0, small_poll, small_record

CHANGES = (
    ("meta", "verdict", "UPDATE meta SET value='pass' WHERE key='verdict'"),
    ("meta", "plan", "UPDATE meta SET value=value || ' ' WHERE key='plan'"),
    ("target", "fw", "UPDATE target SET role='generator' WHERE name='fw'"),
    ("source", "1", "UPDATE source SET interval_ns=interval_ns*2 WHERE id=1"),
    ("series", "2", "UPDATE series SET unit='KiB' WHERE id=2"),
    ("series", "", "UPDATE series SET last_ns=last_ns-1 WHERE id=2"),
    ("error", "1", "UPDATE error SET text='well' WHERE id=1"),
    ("event", "1", "UPDATE event SET end_ns=5 WHERE id=1"),
    ("event", "2", "DELETE FROM event WHERE id=2"),
    ("fault", "", "UPDATE fault SET count=0 WHERE id=1"),
    ("phase", "1", "UPDATE phase SET end_ns=end_ns-1 WHERE id=1"),
    ("span", "1", "UPDATE span SET end_ns=end_ns+1 WHERE id=1"),
    ("finding", "1", "UPDATE finding SET outcome='pass', body=replace(body, 'fail', 'pass') WHERE id=1"),
    ("finding", "99", "INSERT INTO finding VALUES (99, 0, 1, NULL, 'x', 'pass', '{}')"),
    ("artifact", "capture/a", "UPDATE artifact SET media='text/html'"),
    ("chunk", "1", "UPDATE chunk SET samples=samples+1 WHERE id=1"),
    ("chunk", "1", "UPDATE block SET data=(SELECT data FROM block WHERE id=2) WHERE id=1"),
    ("chunk", "1", "UPDATE axis SET first_ns=first_ns+1 WHERE id=1"),
    ("block", "", "INSERT INTO block SELECT 99, series, axis, data FROM block WHERE id=1"),
    ("axis", "", "INSERT INTO axis SELECT 99, chunk, first_ns, last_ns, positions, offsets FROM axis WHERE id=1"),
    ("poll", "source 1, up to poll 1", "INSERT INTO poll VALUES (1, 1, 1, 1, 1, 1, 0, 0, 0, NULL, x'', NULL)"),
    ("layout", "7", "INSERT INTO layout VALUES (7, x'', '', x'01')"),
    ("link", "", "UPDATE link SET rows='{}' WHERE part='target'"),
    ("chain", "", "DELETE FROM chain"),
    ("seal", "1", "UPDATE seal SET document=replace(document, 'links', 'lines')"),
    ("schema", "", "CREATE VIEW other AS SELECT 1"),
)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sealed run that fails."""
    return sealed_run(tmp_path_factory.mktemp("sealed") / "run", seed=1)


def checked(path: Path) -> Checked:
    """What checking a record says."""
    with RecordView.open(path) as view:
        return view.check()


def changed_by(path: Path, statement: str) -> None:
    """Change a record as any program can."""
    with closing(sqlite3.connect(path / "record.sqlite", isolation_level=None)) as sql:
        sql.execute(statement)


def copied(sealed: Path, folder: Path) -> Path:
    """A copy of a run's record that can be changed."""
    folder.mkdir()
    (folder / "record.sqlite").write_bytes((sealed / "record.sqlite").read_bytes())
    return folder


@pytest.mark.parametrize(("table", "row", "statement"), CHANGES)
def test_one_changed_value_is_told_with_its_table_and_row(
    sealed: Path, tmp_path: Path, table: str, row: str, statement: str
) -> None:
    """The place is named, and the verdict is inconclusive or refused, never as it was."""
    run = copied(sealed, tmp_path / "run")
    assert not checked(run).changed
    changed_by(run, statement)
    assert (table, row) in {(change.table, change.row) for change in checked(run).changes}
    try:
        with RecordView.open(run) as view:
            verdict = judge_record(view)
    except RecordError:
        return
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "changed since it was sealed: table" in verdict.reason


def test_a_role_that_does_not_fit_the_plan_is_refused_even_with_a_new_seal(sealed: Path, tmp_path: Path) -> None:
    """Whoever can write the file can seal it again; its tables must agree all the same."""
    run = copied(sealed, tmp_path / "run")
    with Record.open(run) as record:
        record.target("fw", "generator")
        record.put_seal(T0)
    assert not checked(run).changed
    with RecordView.open(run) as view, pytest.raises(RecordError, match="its plan has the target 'fw' as dut, its tab"):
        judge_record(view)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE target SET role='dot' WHERE name='fw'", "'fw' has the role 'dot', and there are only dut, gen"),
        ("DELETE FROM target WHERE name='fw'", "its target 'fw' has no role"),
        ("UPDATE target SET name='fv' WHERE name='fw'", "its target 'fw' has no role"),
        ("INSERT INTO target VALUES ('more', 'dut')", "has the target 'more' not at all, its table of targets as dut"),
    ],
)
def test_a_target_without_its_role_is_refused(sealed: Path, tmp_path: Path, statement: str, words: str) -> None:
    """A record is not judged without one of its devices."""
    run = copied(sealed, tmp_path / "run")
    changed_by(run, statement)
    with RecordView.open(run) as view, pytest.raises(RecordError, match=words):
        judge_record(view)


def test_what_is_written_after_the_end_breaks_no_seal(sealed: Path, tmp_path: Path) -> None:
    """Cursors of sinks, marks of what was done, and events that are added, which are counted."""
    run = copied(sealed, tmp_path / "run")
    with Record.open(run) as record:
        record.set_cursor("influxdb", "further")
        record.set_meta("promises", '{"end": "done"}')
    add_outside_event(run, "fw", Event("note", "fw", "", T0, None, {"text": "late"}))
    with external_events(run) as kept:
        kept.add(Event("note", "tg", "", T0, None, {}))
    after = checked(run)
    assert not after.changed
    assert after.events_since == 2
    with Record.open(run) as record:
        assert record.put_seal(T0).number == 2
    again = checked(run)
    assert (again.changed, again.events_since, len(again.earlier)) == (False, 0, 1)


def test_a_seal_of_the_same_content_is_the_same_seal(sealed: Path, tmp_path: Path) -> None:
    """Sealing again changes nothing where nothing changed."""
    run = copied(sealed, tmp_path / "run")
    with RecordView.open(run) as view:
        before = view.seals()
    with Record.open(run) as record:
        assert record.put_seal(T0 + SECOND) == before[0]


def test_a_change_while_the_run_goes_on_is_told_for_good(tmp_path: Path) -> None:
    """Rows that are changed between their writing and the seal, also where the writer changes them afterwards."""
    with small_record(tmp_path / "run", 20) as record:
        record.target("dut", "dut")
        number = record.add_event("dut", Event("note", "dut", "", T0, None, {}), "user")
        changed_by(tmp_path / "run", 'UPDATE event SET detail=\'{"a": "b"}\'')
        record.end_event(number, T0 + SECOND, {})
        changed_by(tmp_path / "run", "UPDATE poll SET duration_ns=5 WHERE seq=7")
        record.put([small_poll(1, 30)])
        record.finish()
        record.put_seal(T0)
    told = {(change.table, change.row) for change in checked(tmp_path / "run").changes}
    assert told == {("event", "1"), ("poll", "source 1, polls 1 to 21")}


def test_polls_that_are_no_blocks_yet_are_checked(tmp_path: Path) -> None:
    """A record that was never sealed: its chain is checked up to now."""
    small_record(tmp_path / "run", 20).close()
    before = checked(tmp_path / "run")
    assert (before.seal, before.changed) == (None, False)
    changed_by(tmp_path / "run", "UPDATE poll SET start_ns=start_ns+1 WHERE seq=20")
    assert [str(change) for change in checked(tmp_path / "run").changes] == [
        "table poll, row source 1, up to poll 20: not those that were written"
    ]


WRITER = """
import sys
from pathlib import Path

from soakwatch.record import Record
from soakwatch_testing.records import small_poll
from soakwatch_model.event import Event

with Record.open(Path(sys.argv[1])) as record:
    for second in range(int(sys.argv[2]), 10**6):
        record.put([small_poll(1, second)])
        record.add_event("dut", Event("note", "dut", "", second, None, {}), "user")
        if second % 40 == 39:
            record.compact(final=True)
        print(second, flush=True)
"""


def test_the_chain_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Killed at any moment, what is there is whole; whoever goes on continues the same chain."""
    small_record(tmp_path / "run", 1).close()
    links = 0
    for begin in (1, 200, 400):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "run"), str(begin)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                if int(line) >= begin + 55:
                    writer.send_signal(signal.SIGKILL)
                    break
        after = checked(tmp_path / "run")
        assert not after.changed
        assert after.links > links + 50
        links = after.links
    with Record.open(tmp_path / "run") as record:
        record.finish()
        record.put_seal(T0)
    assert not checked(tmp_path / "run").changed


@pytest.mark.parametrize("number", [-1, -2, 0, 99])
def test_a_chain_cannot_be_said_away(sealed: Path, tmp_path: Path, number: int) -> None:
    """A record without a chain is a changed one."""
    run = copied(sealed, tmp_path / "run")
    changed_by(run, f"UPDATE chain SET n={number}")
    assert checked(run).changed
    changed_by(run, "DELETE FROM seal")
    assert checked(run).changed
