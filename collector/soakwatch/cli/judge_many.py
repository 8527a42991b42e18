"""``soakwatch judge`` with several records: progress, JSON lines, and the table of changed verdicts."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import click

from soakwatch.cli.display.counting import counting
from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, EXIT_USAGE
from soakwatch.core.formatting import SYMBOLS
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.workers.executor import Executor
from soakwatch.runs.judge_again import Decisive, JudgedAgain, RecordName, Rules, judged_again
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import cut_to, plural

_MAX_REASON = 200


def judge_many(executor: Executor, names: tuple[RecordName, ...], rules: Rules, json_file: Path | None) -> int:
    """Judge all records, print what changes, and return the exit code of the worst.

    ``json_file`` gets one JSON line per record as it is judged; "-" is standard output, and then there is no table.
    """
    rows: list[tuple[RecordName, JudgedAgain]] = []
    now: Counter[Outcome | None] = Counter()
    changed = 0
    with ExitStack() as stack:
        out = _opened(json_file, stack)
        progress = stack.enter_context(counting(len(names)))
        for name, result in judged_again(executor, names, rules):
            if out is not None:
                out.write(json.dumps(_document(name, result), ensure_ascii=False) + "\n")
                out.flush()
            now[result.now] += 1
            changed += result.changed
            if result.before is not result.now or result.trouble:
                rows.append((name, result))
            progress.one_more()
    if out is not sys.stdout:
        _show(sorted(rows, key=lambda row: row[0].place), now, changed)
    return _exit_code(now)


def _exit_code(now: Counter[Outcome | None]) -> int:
    worst = {None: EXIT_USAGE, Outcome.FAIL: EXIT_FAIL, Outcome.INCONCLUSIVE: EXIT_INCONCLUSIVE}
    return next((code for outcome, code in worst.items() if now[outcome]), EXIT_PASS)


def _opened(file: Path | None, stack: ExitStack) -> TextIO | None:
    if file is None:
        return None
    return sys.stdout if str(file) == "-" else stack.enter_context(file.open("w", encoding="utf-8"))


def _document(name: RecordName, result: JudgedAgain) -> dict[str, object]:
    """One record as JSON; unknown values are null."""
    return {
        "record": name.name,
        "run": result.run or None,
        "before": result.before,
        "now": result.now,
        "changed": result.changed,
        "because": None if result.because is None else asdict(result.because),
        "reason_before": result.reason_before or None,
        "reason": result.reason or None,
        "findings": dict(result.findings),
        "trouble": result.trouble or None,
    }


def _show(rows: list[tuple[RecordName, JudgedAgain]], now: Counter[Outcome | None], changed: int) -> None:
    judged = [(name, result) for name, result in rows if result.now is not None]
    if judged:
        cells = [[name.name, _word(result.before), _word(result.now), _because(result)] for name, result in judged]
        show_table(("run", "before", "now", "because of"), cells)
        click.echo()
    for name, result in rows:
        if result.now is None:
            click.echo(harmless(f"{name.name} could not be judged: {result.trouble}"))
    counts = [
        f"{now[outcome]} {outcome}" for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE) if now[outcome]
    ]
    counts += [f"{now[None]} could not be judged"] if now[None] else []
    first = sum(result.before is None and result.now is not None for _, result in rows)
    new = f", {first} had none" if first else ""
    click.echo(
        f"{_counted(now.total(), 'record')}: {_counted(changed, 'verdict')} changed{new}; now {', '.join(counts)}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else plural(noun)}"


def _word(outcome: Outcome | None) -> str:
    return "not judged" if outcome is None else f"{SYMBOLS[outcome]} {outcome}"


def _because(result: JudgedAgain) -> str:
    found = result.because
    if found is None:
        return cut_to(result.reason, _MAX_REASON)
    more = f" (and {found.others} more)" if found.others else ""
    change = f"{_outcome(found.before)}, now {_outcome(found.now)}"
    return f"{found.rule} on {_subject(found)}: {change}: {cut_to(found.reason, _MAX_REASON)}{more}"


def _subject(found: Decisive) -> str:
    return f"{found.target} {found.object}".strip()


def _outcome(outcome: Outcome | None) -> str:
    return "not asked" if outcome is None else outcome.value
