"""How often the rules are wrong on real series; prints Markdown tables, asserts nothing.

    python tests/bench/accuracy/real.py DATA_DIR                     the reported half of every set
    python tests/bench/accuracy/real.py DATA_DIR --rule growth       one rule
    python tests/bench/accuracy/real.py DATA_DIR --half tuning --each    what may be looked at, file by file
    python tests/bench/accuracy/real.py DATA_DIR --write             also real.md and figures/real-RULE.svg beside it

Rules know nothing of the sets. Half of the files of each set, every second one in the order of a hash of their names,
may be looked at while a rule is made; figures are of the other half. Where a set has no truth for a rule, what was
said is reported and not scored.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.bench.accuracy.sets import SETS
from tests.bench.accuracy.tables import spark, svg, table
from tests.bench.accuracy.trials import Floats, Trial, days, half
from tests.rules.outcomes import LETTERS

from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_rules import detectors
from soakwatch_rules.parameter import parameters
from soakwatch_rules.rule import Rule

FIGURES: Final = Path(__file__).parent / "figures"
_LONG_NS: Final = 12 * 10**9  # a stall of ten seconds; its label has a second on either side
_ALARM: Final = (Outcome.FAIL, Outcome.WARN)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one trial. ``hits`` of ``labels`` were marked, ``false`` marks lie in none."""

    trial: Trial
    letter: str
    reason: str
    labels: int
    hits: int
    long: tuple[int, int]  # labels of ten seconds and more: marked, all
    false: int
    marked_s: float

    @property
    def miss(self) -> float:
        """How bad it was: something ill that passed before an alarm on something well, before labels not found."""
        if self.trial.labels is not None:
            return (self.labels - self.hits) * (0.001 if self.letter == "I" else 1.0) + self.false
        if self.trial.truth == "ill":
            return 100.0 * (self.letter in "PN") + 1.0 * (self.letter == "I")
        return 50.0 * (self.trial.truth == "well" and self.letter in "FW")


def rule_of(trial: Trial) -> Rule | None:
    """The rule of a trial with those parameters that it has; None where there is no such rule yet."""
    try:
        module = importlib.import_module(f"{detectors.__name__}.{trial.rule}")
    except ModuleNotFoundError:
        return None
    kind = getattr(module, "".join(part.capitalize() for part in trial.rule.split("_")))
    known = {p.name for p in parameters(kind)}
    return cast("Rule", kind(**{name: value for name, value in trial.more.items() if name in known}))


def tried(trial: Trial) -> Result | None:
    """One rule on one real case."""
    rule = rule_of(trial)
    if rule is None:
        return None
    findings = rule.judge(trial.case)
    order = list(Outcome)
    worst = min(findings, key=lambda f: order.index(f.outcome)) if findings else None
    marks = _marks(findings)
    labels = trial.labels or ()
    hits = sum(_hit(label, marks) for label in labels)
    long = [label for label in labels if label[1] - label[0] >= _LONG_NS]
    false = sum(not any(_meets(mark, label) for label in labels) for mark in marks)
    return Result(
        trial,
        LETTERS[worst.outcome] if worst else "N",
        worst.sentence if worst else "nothing said",
        len(labels),
        hits,
        (sum(_hit(label, marks) for label in long), len(long)),
        false if trial.labels is not None and trial.whole else 0,
        sum(end - begin for begin, end in marks) * 1e-9,
    )


def _marks(findings: Sequence[Finding]) -> list[tuple[int, int]]:
    """The stretches that alarms point at."""
    return [(m.begin_ns, m.end_ns or m.begin_ns) for f in findings if f.outcome in _ALARM for m in f.marks]


def _hit(label: tuple[int, int], marks: Sequence[tuple[int, int]]) -> bool:
    return any(_meets(mark, label) for mark in marks)


def _meets(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] <= other[1] and other[0] <= span[1]


def _row(name: str, results: list[Result]) -> list[str]:
    """One set in the table of a rule."""
    whole = sum(days(r.trial.case) for r in results)
    scored = [r for r in results if r.trial.labels is None]
    ill = [r for r in scored if r.trial.truth == "ill"]
    well = [r for r in scored if r.trial.truth == "well"]
    free = [r for r in scored if r.trial.truth == "unknown"]
    marked = [r for r in results if r.trial.labels is not None]
    false = sum(r.letter in "FW" for r in well) + sum(r.false for r in marked)
    at_risk = sum(days(r.trial.case) for r in (*well, *marked) if r.trial.whole)
    labels = sum(r.labels for r in marked)
    hits = f"{sum(r.hits for r in marked)} of {labels}" if marked else "-"
    verdicts = f"{sum(r.letter in 'FW' for r in ill)} of {len(ill)}" if ill else "-"
    missed = sum(r.letter in "PN" for r in ill) + sum(r.labels - r.hits for r in marked if r.letter != "I")
    notes = "; ".join(dict.fromkeys(r.trial.note for r in results if r.trial.note))
    return [
        name,
        str(len(results)),
        f"{whole:.3g}",
        verdicts,
        hits,
        str(missed) if ill or marked else "-",
        str(sum(r.letter == "I" for r in (*ill, *well, *marked))),
        f"{false}" if at_risk else "-",
        f"{false / at_risk:.2g}" if at_risk else "-",
        " ".join(f"{letter}{many}" for letter, many in Counter(r.letter for r in free).most_common()) or "-",
        notes if len(notes) < 120 else notes[:117] + "...",
    ]


_HEAD: Final = [
    "set",
    "series",
    "days",
    "ill found",
    "labels hit",
    "missed",
    "left open",
    "false alarms",
    "per day",
    "no truth",
    "note",
]


def _worst(results: list[Result], *, draw: bool) -> str:
    worst = max(results, key=lambda r: r.miss)
    if worst.miss <= 0:
        return "Worst miss: none."
    trial = worst.trial
    counted = f"{worst.labels - worst.hits} labels missed, {worst.false} false marks"
    what = counted if trial.labels is not None else trial.truth
    text = f"Worst miss: {trial.data} {trial.file} ({what}): {worst.reason}"
    shown = _shown(trial)
    if shown is None:
        return text
    if draw:
        FIGURES.mkdir(exist_ok=True)
        begin = int(shown.time_ns[0])
        marks = [(label[0] - begin) * 1e-9 for label in trial.labels or ()]
        title = f"{trial.rule}: {trial.data} {trial.file}"[:110]
        drawn = svg(title, f"{what}: {worst.reason}"[:120], shown.seconds, shown.values, shown.trait.unit, marks)
        (FIGURES / f"real-{trial.rule}.svg").write_text(drawn, encoding="utf-8")
    return f"{text}\n\n`{spark(shown.values)}`"


def _shown(trial: Trial) -> Series | None:
    return next(iter((*trial.case.series, *trial.case.load)), None)


def histories(folder: Path, which: str) -> str:
    """Change points of histories: hits and false ones against annotators, within two values."""
    try:
        from soakwatch_rules.stats.changepoints import history
    except ImportError:
        return ""
    rows = []
    annotations = json.loads((folder / "tcpd" / "annotations.json").read_text())
    wanted = half(which, annotations)
    for path in sorted(folder.glob("tcpd/*.json")):
        if path.stem in wanted:
            raw = json.loads(path.read_text())["series"][0]["raw"]
            value = np.array([float("nan") if x is None else float(x) for x in raw])
            marked = [set(points) for points in annotations[path.stem].values()]
            rows.append(_history(path.stem, value, marked, [c.index for c in history(value)]))
    tiger = np.array(json.loads((folder / "tigerbeetle_series.json").read_text())["series"], dtype=np.float64)
    changes = [c.index for c in history(tiger)]
    rows.append(_history("tigerbeetle (told: 15, 71, drift from 97)", tiger, [{15, 71}], changes))
    head = ["history", "values", "annotators", "marked by most", "found of those", "found", "marked by nobody"]
    return "## changepoints (`history` of run_difference)\n\n" + table(head, rows)


def _history(name: str, value: Floats, annotated: list[set[int]], results: list[int]) -> list[str]:
    def near(index: int, points: set[int]) -> bool:
        return any(abs(index - point) <= 2 for point in points)

    everywhere = set().union(*annotated) if annotated else set()
    most = sorted(p for p in everywhere if 2 * sum(near(p, marked) for marked in annotated) > len(annotated))
    apart = [p for i, p in enumerate(most) if i == 0 or p - most[i - 1] > 2]
    hit = sum(near(p, set(results)) for p in apart)
    odd = sum(not near(f, everywhere) for f in results)
    return [name, str(value.size), str(len(annotated)), str(len(apart)), str(hit), str(len(results)), str(odd)]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="How often the rules are wrong on real series.")
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("--rule", action="append", help="only this rule (again for more)")
    parser.add_argument("--set", action="append", choices=sorted(SETS), help="only this set (again for more)")
    parser.add_argument("--half", default="reported", choices=("reported", "tuning", "all"))
    parser.add_argument("--each", action="store_true", help="also a line for each file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write real.md and figures/real-RULE.svg")
    given = parser.parse_args()
    trials = []
    for name, trials_of in SETS.items():
        if (given.data / name).is_dir() and name in (given.set or SETS):
            own = list(trials_of(given.data / name))
            wanted = half(given.half, (trial.file for trial in own))
            trials += [t for t in own if t.file in wanted and t.rule in (given.rule or [t.rule])]
    with multiprocessing.get_context("fork").Pool(given.jobs) as pool:
        results = [result for result in pool.map(tried, trials, chunksize=4) if result is not None]
    parts = [_about(given.half)]
    parts += [
        _section(rule, [r for r in results if r.trial.rule == rule], each=given.each, draw=given.write)
        for rule in sorted({r.trial.rule for r in results})
    ]
    if (given.data / "changepoints").is_dir() and not given.rule and not given.set:
        parts.append(histories(given.data / "changepoints", given.half))
    text = "\n\n".join(parts) + "\n"
    print(text)
    if given.write:
        (Path(__file__).parent / "real.md").write_text(text, encoding="utf-8")


def _about(which: str) -> str:
    return (
        f"# Real series\n\n`python tests/bench/accuracy/real.py DATA_DIR --half {which} --write`\n\n"
        "F fail, W warn, P pass, I inconclusive, N not applicable. `ill found`: of the series that are known to be ill "
        "those that raised an alarm; `labels hit`: of the labelled stretches those that a mark of an alarm touches; "
        "`missed`: the rest (left open is no miss). False alarms are alarms on series known to be well, and marks "
        "outside of every label, told per day of those series. Without truth only what was said is told."
    )


def _section(rule: str, own: list[Result], *, each: bool, draw: bool) -> str:
    """The tables of one rule."""
    sets = [name for name in SETS if any(r.trial.data == name for r in own)]
    parts = [f"## {rule}", table(_HEAD, [_row(name, [r for r in own if r.trial.data == name]) for name in sets])]
    if lasting := [r for r in own if r.trial.lasted_s is not None]:
        lines = [[r.trial.file, f"{r.trial.lasted_s:.0f}", f"{r.marked_s:.0f}", r.letter] for r in lasting]
        parts.append(table(["outage", "truth, s", "marked, s", "said"], lines))
    if any(not r.trial.whole for r in own):
        long = [(name, *(sum(r.long[i] for r in own if r.trial.data == name) for i in (0, 1))) for name in sets]
        hits = ", ".join(f"{name} {hit} of {many}" for name, hit, many in long if many)
        parts.append(f"Labels of ten seconds and more that were hit: {hits or 'none'}.")
    parts.append(_worst(own, draw=draw))
    if each:
        listed = [
            f"- {r.trial.data} {r.trial.file[:70]}: {r.trial.truth} {r.letter} {r.hits}/{r.labels} false {r.false}: "
            f"{r.reason[:160]} [{r.trial.detail or r.trial.note}]"
            for r in sorted(own, key=lambda r: -r.miss)
        ]
        parts.append("\n".join(listed))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
