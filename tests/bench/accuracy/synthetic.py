"""How often the rules are wrong on signals of known truth; prints Markdown tables, asserts nothing.

    python tests/bench/accuracy/synthetic.py --seeds 300 --jobs 2           all rules
    python tests/bench/accuracy/synthetic.py --rule growth --seeds 50       one
    python tests/bench/accuracy/synthetic.py --write                        also rules/soakwatch_rules/measured/RULE.md

A row is a scenario: % of its seeds that failed, warned, passed, were inconclusive or not applicable, and how many of
them the OUTCOMES of the rule's test call wrong. Each rule is written as soon as it is done. The summary and the
pictures are of all rules: a new one, measured by itself, gets into them when all are measured.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as many processes as cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.bench.accuracy.closeness import Near, closeness_lines, near
from tests.bench.accuracy.tables import percent, spark, svg, table, upper
from tests.rules.outcomes import LETTERS, PARAMETERS, RIGHT, concerning, named

from soakwatch_model.finding import Finding
from soakwatch_model.series import Series
from soakwatch_rules import detectors, measured
from soakwatch_rules.rule import Rule
from soakwatch_rules.signals import leak
from soakwatch_testing.scenarios.families import cuts, findings_of, judged
from soakwatch_testing.scenarios.scenario import Scenario

MEASURED: Final = Path(next(iter(measured.__path__)))
FIGURES: Final = Path(__file__).parent / "figures"
SUMMARY: Final = Path(__file__).parent / "synthetic.md"
ORDER: Final = "FWPIN"

MORE: Final[Mapping[str, tuple[Mapping[str, float], ...]]] = {"growth": ({"tolerance": 0.01},)}
"""Other parameters under which a rule is tried as well."""

POWER: Final = ("white", "AR .9", "AR .99")
"""The noises under which the stated smallest detectable growth is tried."""

TOLD: Final = frozenset(
    {
        "white",
        "AR .9",
        "AR .99",
        "sawtooth 1 h",
        "warm-up 1 h",
        "warm-up 4 h",
        "cache full at .4",
        "step at an event",
        "bump 10 % for 2 h",
        "quantised 4 %",
        "quantised 1 %",
        "gaps 20 % and 3 h",
        "restart, warm-up again",
        "outliers 1 %",
    }
)
"""The healthy shapes that can be distinguished from a leak: at most 1 % may fail."""

PEGS: Final = frozenset({"peg of 3 readings, 10 s", "peg of 3 readings, 60 s"})
POLLING: Final = frozenset({"poll mode 100 %", "poll mode 99 %", "half polling 97 %"})


@dataclass(frozen=True, slots=True)
class Row:
    """What a rule said of one scenario: seeds by letter, and the first that the table does not allow."""

    scenario: str
    outcomes: Mapping[str, int]
    wrong: int
    decided: int  # of the wrong ones those that decided, and did not leave it open
    example: tuple[int, str] | None  # seed, reason
    numbers: tuple[Near, ...] = ()


def rule_named(name: str, more: Mapping[str, float]) -> Rule:
    """A rule with its defaults and some other parameters."""
    module = importlib.import_module(f"soakwatch_rules.detectors.{name}")
    kind: object = getattr(module, "".join(part.capitalize() for part in name.split("_")))
    return cast("Rule", kind(**{**PARAMETERS.get(name, {}), **more}))  # type: ignore[operator]


def right(name: str, family: str, what: str, more: Mapping[str, float]) -> frozenset[str]:
    """The letters that are right for a scenario: with a tighter tolerance the leaks of 5 % a day are leaks."""
    if more and what.startswith("leak"):
        return frozenset("FI")
    return RIGHT[name, family, what]


def tried(task: tuple[str, Mapping[str, float], str, str, int]) -> Row:
    """One rule on one scenario."""
    name, more, family, what, seeds = task
    rule, scenario = rule_named(name, more), named(family, what)
    allowed = right(name, family, what, more)
    outcomes: Counter[str] = Counter()
    example: tuple[int, str] | None = None
    wrong = decided = 0
    numbers: list[Near] = []
    for seed in range(seeds):
        signal = scenario.signal(seed)
        findings = findings_of(rule, signal.case)
        numbers += near(name, signal.truth, findings[0]) if findings else []
        letter = LETTERS[findings[0].outcome] if findings else "N"
        outcomes[letter] += 1
        if letter not in allowed:
            wrong += 1
            decided += letter != "I"
            if example is None or (decided == 1 and letter != "I"):
                example = (seed, findings[0].sentence if findings else "nothing said")
    return Row(what, outcomes, wrong, decided, example, tuple(numbers))


def powered(task: tuple[str, Mapping[str, float], str, float, int]) -> tuple[str, float, Counter[str], float]:
    """Leaks of the allowed growth plus a multiple of what the rule itself states to be detectable in that noise."""
    name, more, what, times, seeds = task
    rule, outcomes, stated = rule_named(name, more), Counter[str](), []
    for seed in range(seeds):
        case = named("growth", what).signal(seed).case
        (part,) = cuts(rule, case)
        (calm,) = rule.judge(part)
        if calm.smallest_detectable is None or calm.limit is None:
            continue
        stated.append((calm.smallest_detectable - calm.limit) * 24 / float(np.median(part.series[0].values)) * 100)
        beyond = calm.smallest_detectable - calm.limit  # the finding states the growth, not what exceeds the limit
        rate = (calm.limit + times * beyond) / 3600
        (finding,) = rule.judge(replace(part, series=(leak(part.series[0], rate),)))
        outcomes[LETTERS[finding.outcome]] += 1
    return what, times, outcomes, float(np.median(stated)) if stated else float("nan")


def floor_of(name: str, row: Row, seeds: int) -> str:
    """What the row has to reach and whether it does; empty where nothing is asked."""
    shares = {letter: 100 * many / seeds for letter, many in row.outcomes.items()}
    if name == "growth" and row.scenario in TOLD:
        return "F <= 1" + ("" if shares.get("F", 0) <= 1 else " **missed**")
    if name == "growth" and row.scenario == "twelve readings":
        return "P = 0" + ("" if not shares.get("P") else " **missed**")
    if name == "cpu_spike" and row.scenario in PEGS:
        return "F = 100" + ("" if shares.get("F", 0) == 100 else " **missed**")
    if name == "cpu_spike" and row.scenario in POLLING:
        return "F = 0" + ("" if not shares.get("F") else " **missed**")
    return ""


def _rows(name: str, more: Mapping[str, float], rows: list[Row], seeds: int) -> str:
    families = {s.name: s.family for s in concerning(name)}  # names of one rule's families differ
    lines = []
    for row in rows:
        letters = right(name, families[row.scenario], row.scenario, more)
        may = "/".join(letter for letter in ORDER if letter in letters)
        cells = [percent(row.outcomes.get(letter, 0), seeds) for letter in ORDER]
        floor = "" if more else floor_of(name, row, seeds)
        lines.append([row.scenario, may, *cells, percent(row.wrong, seeds), floor])
    return table(["scenario", "right", *ORDER, "wrong", "floor"], lines)


def picture(name: str, row: Row) -> tuple[str, str]:
    """The worst miss of a rule: a sentence with a sparkline, and an SVG."""
    scenario = next(s for s in concerning(name) if s.name == row.scenario)
    seed, reason = row.example or (0, "")
    shown = _shown(scenario, seed)
    if shown is None:
        return f"Worst miss: {row.scenario}, seed {seed}: {reason}", ""
    finding = _finding_of(name, scenario, seed)
    marks = [] if finding is None else [(m.begin_ns - int(shown.time_ns[0])) * 1e-9 for m in finding.marks]
    title = f"{name}: {scenario.name}, seed {seed} ({shown.metric}, {shown.trait.unit})"
    text = f"Worst miss: {scenario.name}, seed {seed}: {reason}\n\n`{spark(shown.values)}`"
    return text, svg(title, reason[:120], shown.seconds, shown.values, shown.trait.unit, marks)


def _shown(scenario: Scenario, seed: int) -> Series | None:
    case = scenario.signal(seed).case
    return next(iter((*case.series, *case.load)), None)


def _finding_of(name: str, scenario: Scenario, seed: int) -> Finding | None:
    findings = judged(rule_named(name, {}), scenario, seed)
    return findings[0] if findings else None


def bench(name: str, seeds: int, pool: multiprocessing.pool.Pool, *, draw: bool) -> str:
    """All tables of one rule, as Markdown."""
    rule, begin = rule_named(name, {}), time.perf_counter()
    command = f"python tests/bench/accuracy/synthetic.py --rule {name} --seeds {seeds} --write"
    parts = [f"`{command}` · {name} version {rule.version} · {seeds} seeds a scenario"]
    parts.append(
        "% of seeds: F fail, W warn, P pass, I inconclusive, N not applicable; · none. `right` is what may be said, "
        f"`wrong` the share that was not. No case in {seeds} seeds means at most {upper(0, seeds):.1f} % (95 %)."
    )
    worst: Row | None = None
    for more in ({}, *MORE.get(name, ())):
        tasks = [(name, more, s.family, s.name, seeds) for s in concerning(name)]
        rows = pool.map(tried, tasks, chunksize=1)
        head = "defaults" if not more else ", ".join(f"{key} {value:g}" for key, value in more.items())
        parts.append(f"**{head[0].upper()}{head[1:]}**: {rule_named(name, more).definition()}")
        parts.append(_rows(name, more, rows, seeds))
        close = [line for row in rows for line in closeness_lines(row.scenario, row.numbers)]
        if close and not more:
            what = ["scenario", "number", "told, %", "error: median (10 to 90 %)", "interval holds it, %"]
            parts.append("How near the numbers come to the truth:\n\n" + table(what, close))
        if not more:
            worst = max((row for row in rows if row.wrong), key=lambda r: (r.decided, r.wrong), default=None)
    if name == "growth":
        parts += [_power(name, more, seeds, pool) for more in ({}, *MORE.get(name, ()))]
    if worst is None:
        parts.append("Worst miss: none, every finding is right.")
        if draw:
            (FIGURES / f"{name}.svg").unlink(missing_ok=True)
    else:
        sentence, drawn = picture(name, worst)
        parts.append(sentence)
        if draw and drawn:
            FIGURES.mkdir(exist_ok=True)
            (FIGURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
        elif draw:
            (FIGURES / f"{name}.svg").unlink(missing_ok=True)
    print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return "\n\n".join(parts) + "\n"


def _power(name: str, more: Mapping[str, float], seeds: int, pool: multiprocessing.pool.Pool) -> str:
    tasks = [(name, more, what, times, seeds) for what in POWER for times in (1.0, 2.0, 3.0)]
    floors = {2.0: ("F >= 80, P < 2", 80), 3.0: ("F >= 92, P < 2", 92)}
    rows = []
    for what, times, outcomes, stated in pool.map(powered, tasks, chunksize=1):
        whole = outcomes.total()
        least, passed = 100 * outcomes["F"] / max(1, whole), 100 * outcomes["P"] / max(1, whole)
        asked, share = floors.get(times, ("", 0))
        missed = " **missed**" if asked and (least < share or passed >= 2) else ""
        shares = [percent(outcomes[letter], whole) for letter in "FPI"]
        rows.append([what, f"{stated:.2f}", f"{times:g}", *shares, asked + missed])
    title = "Leaks of the allowed growth plus a multiple of the smallest detectable growth that the finding states"
    given = "defaults" if not more else ", ".join(f"{key} {value:g}" for key, value in more.items())
    return f"{title} ({given}):\n\n" + table(
        ["noise", "stated beyond the allowed, %/24 h", "times", "F", "P", "I", "floor"], rows
    )


def summary() -> str:
    """One line a rule, read back from the measured tables."""
    lines = []
    for path in sorted(MEASURED.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        first, _, rest = text.partition("\n")
        measured_rows = [[c.strip() for c in line.split("|")[1:-1]] for line in _first_table(rest)]
        shares = [[float(cell.replace("·", "0")) for cell in row[2:7]] for row in measured_rows]
        may = [row[1].split("/") for row in measured_rows]
        alarms, misses = _wrong("FW", shares, may), _wrong("PN", shares, may)
        drawn = f"[picture](figures/{path.stem}.svg)" if (FIGURES / f"{path.stem}.svg").exists() else "-"
        link = f"[{path.stem}](../../../rules/soakwatch_rules/measured/{path.name})"
        tail = first.split(" · ")[1:]
        lines.append(
            [
                link,
                *(part.split()[-1] if "version" in part else part.split()[0] for part in tail),
                str(len(shares)),
                *_summary(alarms, measured_rows),
                *_summary(misses, measured_rows),
                str(text.count("**missed**")),
                drawn,
            ]
        )
    head = [
        "rule",
        "version",
        "seeds",
        "scenarios",
        "false alarms, mean %",
        "most",
        "misses, mean %",
        "most",
        "floors missed",
        "worst miss",
    ]
    command = "python tests/bench/accuracy/synthetic.py --seeds 300 --jobs 2 --write"
    return f"# Signals of known truth\n\n`{command}`\n\n{table(head, lines)}\n"


def _wrong(letters: str, shares: list[list[float]], may: list[list[str]]) -> list[float]:
    """The share of each scenario that was said although it is not right, of some letters."""
    return [
        sum(share for letter, share in zip(ORDER, row, strict=True) if letter in letters and letter not in allowed)
        for row, allowed in zip(shares, may, strict=True)
    ]


def _summary(wrong: list[float], rows: list[list[str]]) -> tuple[str, str]:
    """The mean, and the scenario with the most."""
    most = max(wrong, default=0.0)
    where = f"{rows[wrong.index(most)][0]}: {most:g}" if most else "-"
    return f"{sum(wrong) / max(1, len(wrong)):.2g}", where


def _first_table(text: str) -> list[str]:
    lines = text[text.index("| scenario | right") :].splitlines()[2:]
    return lines[: next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="How often the rules are wrong on signals of known truth.")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--rule", action="append", help="only this rule (again for more)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--write",
        action="store_true",
        help="write measured/RULE.md; synthetic.md and figures as well, but not for a new rule alone",
    )
    given = parser.parse_args()
    known = sorted(module.name for module in pkgutil.iter_modules(detectors.__path__))
    wanted = [name for name in given.rule or known if concerning(name)]
    if unknown := sorted(set(given.rule or ()) - set(known)):
        parser.error(f"no such rule: {', '.join(unknown)}")
    if silent := sorted(set(given.rule or ()) - set(wanted)):
        parser.error(f"no scenario concerns {', '.join(silent)}: say in OUTCOMES of its test what it says of which")
    with multiprocessing.get_context("fork").Pool(given.jobs) as pool:
        for name in wanted:
            listed = not given.rule or f"[{name}](" in SUMMARY.read_text(encoding="utf-8")
            text = bench(name, given.seeds, pool, draw=given.write and listed)
            print(f"## {name}\n\n{text}", flush=True)
            if given.write:
                (MEASURED / f"{name}.md").write_text(text, encoding="utf-8")
                if listed:
                    SUMMARY.write_text(summary(), encoding="utf-8")


if __name__ == "__main__":
    main()
