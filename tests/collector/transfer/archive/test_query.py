"""``soakwatch query`` through the command: what it answers, in which form, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, Command, environment

Recorded = Callable[..., Path]


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    """The rows of an answer in JSON."""
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_what_grew_in_one_release_and_not_in_another(ask: Command) -> None:
    """Only what was judged there and did not grow counts; what is not known of it is told beside the answer."""
    done = ask("query", "grew", "--release", "7.2", "--not-in", "7.1", "--format", "json")
    (bgpd,) = rows(done)
    assert (bgpd["process"], bgpd["metric"], bgpd["grew on"], bgpd["judged on"]) == (
        "bgpd",
        "process.memory.usage",
        2,
        2,
    )
    assert (bgpd["devices"], bgpd["other: judged on"], bgpd["unit"]) == ("fw1, fw2", 2, "By/h")
    assert bgpd["fastest"] == pytest.approx(60 * 2**20, rel=0.01)
    assert sorted(done.stderr.splitlines()) == [
        "not known: snort grew (process.memory.usage), and was not judged in 7.1",
        "not known: zebra grew (process.memory.usage), and was not judged in 7.1",
    ]
    table = ask("query", "grew", "--release", "7.2", "--not-in", "7.1").stdout
    assert "60 MiB/h" in table
    assert "unit" not in table.splitlines()[0]


def test_what_grew_anywhere(ask: Command) -> None:
    found = {row["process"]: row["grew on"] for row in rows(ask("query", "grew", "--format", "json"))}
    assert found == {"bgpd": 2, "sshd": 2, "snort": 1, "zebra": 1}
    assert rows(ask("query", "grew", "--metric", "system.*", "--format", "json")) == []


def test_what_failed_on_which_release(ask: Command) -> None:
    found = rows(ask("query", "failed", "--format", "json"))
    assert [(row["release"], row["object"], row["failed on"], row["of devices"]) for row in found] == [
        ("7.1", "sshd", 1, 2),
        ("7.2", "bgpd", 2, 2),
        ("7.2", "snort", 1, 2),
        ("7.2", "sshd", 1, 2),
        ("7.2", "zebra", 1, 2),
    ]
    assert found[0]["last reason"] == "fw1: sshd: fail"


def test_slopes_by_device_and_release(ask: Command) -> None:
    done = ask("query", "slope", "--metric", "process.memory.*", "--process", "bgpd", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["release"], row["device"], round(float(row["median"]) / 2**20)) for row in found] == [
        ("7.1", "fw1", 0),
        ("7.1", "fw2", 0),
        ("7.2", "fw1", 60),
        ("7.2", "fw2", 60),
    ]
    assert {row["unit"] for row in found} == {"By/h"}
    done = ask("query", "slope")
    assert done.returncode == 2
    assert "query slope asks about a metric: name it, such as --metric" in done.stderr


def test_drops_by_night_and_what_was_read_once_is_no_zero(ask: Command) -> None:
    """A counter that was read once has no increase: the device is told, and is not among those that dropped nothing."""
    done = ask("query", "drops", "--format", "json")
    assert [(row["night"], row["device"], row["dropped"], row["unit"]) for row in rows(done)] == [
        ("2026-09-21", "fw1", 0, "{packet}"),
        ("2026-09-22", "fw1", 40, "{packet}"),
        ("2026-09-22", "fw2", 0, "{packet}"),
    ]
    assert done.stderr == "not known: fw2, 2026-09-21: system.network.packet.dropped was read too rarely: not known\n"
    assert "40 packets" in ask("query", "drops", "--night", "2026-09-22").stdout


def test_filters_narrow_every_question_and_sql(ask: Command) -> None:
    count = "SELECT count(*) AS n FROM series"
    every = rows(ask("query", "--sql", count, "--format", "json"))[0]["n"]
    some = rows(
        ask(
            *("query", "--sql", count, "--device", "fw1", "--release", "7.2*", "--night", "2026-09-22.."),
            *("--metric", "process.*", "--process", "bgpd", "--role", "dut", "--phase", "soak", "--format", "json"),
        )
    )
    assert every == 56
    assert some == [{"n": 1}]
    found = rows(ask("query", "levels", "--metric", "process.memory.usage", "--phase", "soak", "--format", "json"))
    assert {row["release"] for row in found} == {"7.1", "7.2"}


def test_runs_and_verdicts_are_listed_with_their_seals(recorded: Recorded, soakwatch: Command) -> None:
    recorded("a", release="7.1")
    recorded("b", release="7.1", night=1, seal=False, verdict="inconclusive")
    assert soakwatch("archive", "add", "runs", "--jobs", "1").returncode == 0
    found = rows(soakwatch("query", "runs", "--format", "json"))
    assert [(row["night"], row["verdict"], row["seal"], row["devices"]) for row in found] == [
        ("2026-09-21", "pass", "sealed", 1),
        ("2026-09-22", "inconclusive", "unsealed", 1),
    ]
    assert found[0]["coverage"] == pytest.approx(0.9)
    found = rows(soakwatch("query", "verdicts", "--format", "json"))
    assert [(row["pass"], row["inconclusive"], row["not sealed"]) for row in found] == [(1, 0, 0), (0, 1, 1)]


def test_readings_are_a_table_of_their_own(ask: Command) -> None:
    sql = (
        "SELECT r.phase, count(*) AS n, max(value) AS most, any_value(unit) AS unit FROM readings r JOIN runs"
        " USING (key, target) WHERE release = '7.2' AND r.device = 'fw2' AND r.object LIKE '%bgpd%'"
        " GROUP BY ALL ORDER BY 1"
    )
    found = rows(ask("query", "--sql", sql, "--format", "json"))
    assert [(row["phase"], row["n"], row["unit"]) for row in found] == [("baseline", 27, "By"), ("soak", 27, "By")]


def test_the_questions_and_tables_are_listed(soakwatch: Command, tmp_path: Path) -> None:
    """Without an archive: a user looks what can be asked before there is one."""
    listed = soakwatch("query").stdout
    assert "grew" in listed
    assert "What failed on which release" in listed
    tables = soakwatch("query", "tables").stdout
    assert "per_hour" in tables
    assert "readings" in tables
    assert soakwatch("query", "grew", "--show-sql").stdout.startswith("-- Which processes grew")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grew", "--release", "7.3"), "has no run of release '7.3'; did you mean '7.2'?"),
        (("grw",), "no question is called 'grw'; did you mean 'grew'?"),
        (("failed", "--device", "fw9"), "has no device 'fw9'"),
        (("failed", "--phase", "soka"), "has no phase 'soka'; did you mean 'soak'?"),
        (("failed", "--not-in", "7.1"), "--not-in is for a question that compares releases (query grew)"),
        (("failed", "--night", "yesterday"), "write a day such as 2026-11-28"),
        (("failed", "--archive", "nowhere"), "nowhere is no archive"),
        (("failed", "--sql", "SELECT 1"), "leave failed out"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(ask: Command, words: tuple[str, ...], said: str) -> None:
    done = ask("query", *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_sql_reads_the_tables_and_nothing_else(two_releases: Command, tmp_path: Path) -> None:
    """No file but those of the tables, none written, no setting changed, nothing but one SELECT."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    listed = next((tmp_path / "archive" / "runs").rglob("*.parquet"))
    before = {file: file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file()}
    for sql in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        f"COPY (SELECT 1) TO '{listed}'",
        f"ATTACH '{tmp_path}/other.db'",
        "SET enable_external_access = true",
        "SELECT 1; SET lock_configuration = false",
        f"SELECT * FROM query('COPY (SELECT 1) TO ''{tmp_path}/out.csv''')",
        "DROP VIEW runs",
        "CREATE TABLE t (a INT)",
        "INSTALL httpfs",
        f"EXPORT DATABASE '{tmp_path}/out'",
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "SELEC 1",
        "",
    ):
        done = two_releases("query", "--sql", sql)
        assert done.returncode == 2, (sql, done.stdout)
        assert done.stderr.startswith("soakwatch: "), done.stderr
        assert str(tmp_path) not in done.stdout
    after = {file: file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file()}
    assert after == before
    done = two_releases("query", "--sql", "SELECT nothing FROM runs")
    assert 'Referenced column "nothing" not found' in done.stderr


def test_text_of_a_device_steers_neither_terminal_nor_spreadsheet(recorded: Recorded, soakwatch: Command) -> None:
    recorded("a", release="=1+1", device="fw'; DROP--\x1b[2J")
    assert soakwatch("archive", "add", "runs", "--jobs", "1").returncode == 0
    table = soakwatch("query", "failed", "--device", "fw'; DROP--\x1b[2J")
    assert (table.returncode, table.stdout) == (0, "no row: nothing in the archive answers this\n")
    done = soakwatch("query", "--sql", "SELECT device, release FROM runs WHERE role = 'dut'", "--format", "csv")
    assert done.stdout == "device,release\nfw'; DROP--\\x1b[2J,'=1+1\n"
    assert "\x1b" not in soakwatch("query", "--sql", "SELECT device FROM runs").stdout


def test_long_answers_are_cut_on_a_table_alone(ask: Command) -> None:
    sql = "SELECT metric FROM series"
    table = ask("query", "--sql", sql, "--limit", "3").stdout.splitlines()
    assert len(table) == 1 + 3 + 1
    assert table[-1] == "and 53 more rows: --limit 56 shows all, --format csv writes them"
    assert len(rows(ask("query", "--sql", sql, "--format", "json", "--limit", "3"))) == 56


def test_an_answer_that_needs_too_much_memory_is_refused_and_writes_nothing(
    two_releases: Command, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = two_releases("query", "--sql", "SELECT len(list(range)) FROM range(150000000)")
    assert done.returncode == 2
    assert "needs more than 1GB of memory: name fewer nights" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_question_that_takes_too_long_is_ended_by_ctrl_c(made: Path) -> None:
    asking = subprocess.Popen(
        [SOAKWATCH, "query", "--sql", "SELECT count(*) FROM range(100000000000) a, range(1000000) b"],
        cwd=made,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    work = psutil.Process(asking.pid)
    deadline = time.monotonic() + MAX_WAIT_S
    while work.num_threads() < 3 and time.monotonic() < deadline:  # DuckDB is there: it opens the archive, or works
        time.sleep(0.05)
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=MAX_WAIT_S)
    assert asking.returncode == 130
