"""Random changes of a sealed record: what is changed, and whether it is told."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Artifact, Record, RecordView
from soakwatch.report.json import render_json
from soakwatch.runs.verification import SealState, verify
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
PLAN = """\
name: overnight
duration: {seconds}s
targets:
  fw: {{role: dut, sources: [{{local: {{interval: 1s}}}}]}}
  tg: {{role: generator, sources: [{{local: {{interval: 1s}}}}]}}
"""
OUTSIDE = ("cursor", "rollup")
"""Tables that a seal does not cover."""
KINDS = (
    "bit",
    "byte",
    "word",
    "page",
    "cut",
    "text",
    "value",
    "row gone",
    "row twice",
    "rows exchanged",
    "table",
    "file",
)


def sealed_run(folder: Path, *, seed: int = 0, seconds: int = 120) -> Path:
    """The folder of a judged and sealed run of a device with a core dump and drops, with something in every table."""
    numbers = random.Random(seed)
    with Record.create(folder) as record:
        end_ns = T0 + seconds * SECOND
        for key, text in {
            "run": "overnight",
            "plan": PLAN.format(seconds=seconds),
            "start_ns": str(T0),
            "ended_ns": str(end_ns),
            "promises": "{}",
            "fingerprint": json.dumps({"fw": {"cpu": {"isolated": "2-3", "nohz_full": ""}}}),
            "poll_mode": json.dumps({"fw": [3]}),
        }.items():
            record.set_meta(key, text)
        record.target("fw", "dut")
        record.target("tg", "generator")
        record.target("monitor", "monitor")
        device = record.source("fw", "local", "fw/local", SECOND, required=True).id
        other = record.source("tg", "local", "tg/local", SECOND, required=True).id
        record.begin_span(T0)
        record.begin_phase("soak", T0)
        record.add_event("fw", Event("core_dump", "fw", f"process=p{seed}", T0 + 9 * SECOND, None, {}), "probe")
        record.add_event("fw", Event("note", "fw", "", T0 + 19 * SECOND, None, {"text": f"seed {seed}"}), "user")
        for second in range(seconds):
            due = T0 + second * SECOND
            cpu = Sample("system.cpu.utilization", "", numbers.uniform(0.2, 0.5), due)
            size = Sample("process.memory.usage", "process=p", 10**8 + second * 4096 * numbers.randrange(9), due)
            answer = Answer((cpu, size), (), (Fault("load.latency", "", f"not there, {seed}"),))
            record.put([Poll(device, due, due, 1, PollOutcome.OK, None, answer)])
            if second % 7:
                packets = Sample("load.rx.packets", "", second * (10**6 + seed), due)
                record.put([Poll(other, due, due, 1, PollOutcome.OK, None, Answer((packets,), (), ()))])
            else:
                record.put([Poll(other, due, due, 1, PollOutcome.TIMEOUT, f"no answer {seed}", Answer((), (), ()))])
        record.end_phase(end_ns)
        record.heartbeat(end_ns)
        record.keep_artifact(Artifact("capture/a", "text/plain", numbers.randbytes(2000)))
        record.set_cursor("influxdb", f"{seed}")
        record.compact(final=True)
    with RecordView.open(folder) as view:
        verdict = judge_record(view, ended=True)
    with Record.open(folder) as record:
        record.put_findings(verdict.findings, live=False, judged_ns=end_ns)
        record.set_meta("verdict", verdict.outcome.value)
        record.set_meta("reason", verdict.reason)
        record.finish()
        record.put_seal(end_ns)
    return folder


def change(file: Path, other: Path, kind: str, numbers: random.Random) -> str:
    """Change a record's file in one way; ``other`` is another sealed record. What was done."""
    if kind == "file":
        shutil.copyfile(other, file)
        return "the file of another run"
    if kind in {"bit", "byte", "word", "page", "cut"}:
        return _change_bytes(file, kind, numbers)
    with closing(sqlite3.connect(file, isolation_level=None)) as sql:
        return _change_rows(sql, other, kind, numbers)


def _change_bytes(file: Path, kind: str, numbers: random.Random) -> str:
    data = bytearray(file.read_bytes())
    at = numbers.randrange(len(data) - 8)
    if kind == "bit":
        data[at] ^= 1 << numbers.randrange(8)
    elif kind == "byte":
        data[at] = (data[at] + numbers.randrange(1, 256)) % 256
    elif kind == "word":
        data[at : at + 8] = numbers.randbytes(8)
    elif kind == "page":
        one, two = (numbers.randrange(len(data) // 4096) * 4096 for _ in range(2))
        data[one : one + 4096], data[two : two + 4096] = data[two : two + 4096], data[one : one + 4096]
    else:
        data = data[: numbers.randrange(len(data))]
    file.write_bytes(data)
    return f"{kind} at {at}"


def _change_rows(sql: sqlite3.Connection, other: Path, kind: str, numbers: random.Random) -> str:
    tables = [row[0] for row in sql.execute("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name")]
    filled = [t for t in tables if sql.execute(f"SELECT count(*) FROM {t}").fetchone()[0]]
    table = "meta" if kind == "text" else numbers.choice(tables if kind == "table" else filled)
    columns = [row[1] for row in sql.execute(f"PRAGMA table_info({table})")]
    if kind == "table":
        sql.execute("ATTACH ? AS other", (str(other),))
        sql.execute(f"DELETE FROM main.{table}")
        sql.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
        return f"table {table} of another run"
    rows = sql.execute(f"SELECT * FROM {table}").fetchall()
    row = numbers.choice(rows)
    where = " AND ".join(f"{column} IS ?" for column in columns)
    if kind == "row gone":
        sql.execute(f"DELETE FROM {table} WHERE {where}", row)
        return f"a row of {table} gone"
    if kind == "row twice":
        again = [_other(value, numbers) if index == 0 else value for index, value in enumerate(row)]
        sql.execute(f"INSERT OR REPLACE INTO {table} VALUES ({','.join('?' * len(columns))})", again)
        return f"a row of {table} twice"
    column = "value" if kind == "text" else numbers.choice(columns)
    if kind in {"text", "value"}:
        value = _other(row[columns.index(column)], numbers)
        sql.execute(f"UPDATE OR REPLACE {table} SET {column}=? WHERE {where}", (value, *row))
        return f"{table}.{column}: {row[columns.index(column)]!r:.40} to {value!r:.40}"
    second = numbers.choice(rows)
    index = columns.index(column)
    if len(columns) > 1:
        index = numbers.randrange(1, len(columns))
        column = columns[index]
    for one, two in ((row, second), (second, row)):
        sql.execute(f"UPDATE OR REPLACE {table} SET {column}=? WHERE {columns[0]} IS ?", (two[index], one[0]))
    return f"{table}.{column} of two rows exchanged"


def _other(value: object, numbers: random.Random) -> object:
    if isinstance(value, int):
        return numbers.choice([value + 1, value - 1, -value - 1, numbers.randrange(10**6), 1 - min(value, 1)])
    if isinstance(value, str):
        at = numbers.randrange(len(value) + 1)
        return numbers.choice([value[:at] + "x" + value[at:], value[:at] + value[at + 1 :], "", "pass", "generator"])
    if isinstance(value, bytes) and value:
        at = numbers.randrange(len(value))
        return value[:at] + bytes([value[at] ^ 1 << numbers.randrange(8)]) + value[at + 1 :]
    return numbers.choice([0, 1, numbers.randrange(10**9)])


def content(file: Path) -> dict[str, list[str]]:
    """Every row that a seal covers, as text."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as sql:
        sql.text_factory = bytes
        tables = [row[0].decode() for row in sql.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        every = {
            table: sorted(repr(row) for row in sql.execute(f"SELECT * FROM {table}"))
            for table in tables
            if table not in OUTSIDE
        }
    every["meta"] = [row for row in every["meta"] if not row.startswith("(b'promises'")]
    return every


def judged(file: Path) -> str:
    """The verdict of a record, or the sentence by which it is refused."""
    try:
        with RecordView.open(file) as view:
            document = json.loads(render_json(judge_record(view)))
    except SoakwatchError as error:
        return f"refused: {type(error).__name__}"
    document["seal"] = None
    return json.dumps(document, sort_keys=True)


def told(file: Path, digest: str) -> bool:
    """Whether ``soakwatch verify --digest`` says that something is wrong. Raises what is no error for a user."""
    try:
        with RecordView.open(file) as view:
            return verify(view, digest=digest).state is not SealState.WHOLE
    except SoakwatchError:
        return True


def attempts(folder: Path, first: int, number: int) -> tuple[Counter[str], list[str]]:
    """So many random changes, from a seed on: how many of each kind ended how, and sentences of what was wrong."""
    original, other = folder / "one" / "record.sqlite", folder / "two" / "record.sqlite"
    with RecordView.open(original) as view:
        digest = view.seals()[-1].digest
    before, verdict = content(original), judged(original)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    work = folder / f"work{first}"
    work.mkdir()
    file = work / "record.sqlite"
    for seed in range(first, first + number):
        numbers = random.Random(seed)
        kind = KINDS[seed % len(KINDS)]
        shutil.copyfile(original, file)
        what = ""
        try:
            what = change(file, other, kind, numbers)
            if told(file, digest):
                counts["found"] += 1
                if (seed % 50 == 0 or kind == "text") and judged(file) == verdict and kind not in {"file", "text"}:
                    wrong.append(f"{seed}: {kind}, {what}: verify tells, and the verdict is as before")
                continue
            same = content(file) == before
            counts["same content" if same else "not told"] += 1
            if not same or judged(file) != verdict:
                wrong.append(f"{seed}: {kind}, {what}: not told")
        except sqlite3.Error:
            counts["not possible"] += 1  # SQLite itself refuses the change
        except Exception as error:  # noqa: BLE001 - a defect is what is looked for
            wrong.append(f"{seed}: {kind}, {what}: {type(error).__name__}: {error}")
        finally:
            for left in work.iterdir():
                left.unlink()
    return counts, wrong
