"""Whole runs of known truth, judged as a user judges them: how often is the verdict of the night right?

    python tests/bench/accuracy/runs.py --healthy 200 --sick 400 --jobs 2
    python tests/bench/accuracy/runs.py --healthy 0 --sick 60 --only latency --each
    python tests/bench/accuracy/runs.py --healthy 1 --seed 17 --keep runs/seed-17     keeps the record or the table
    python tests/bench/accuracy/runs.py --real DATA_DIR --healthy 400 --sick 800 --sizes    on real backgrounds
    python tests/bench/accuracy/runs.py --sick 400 --draw 20 worst     draws the twenty that were judged worst

Each run is drawn from its seed (``lives.py``, ``telemetry.py``); a sick one is a healthy one to which something is done
(``sick.py``, ``sick_traffic.py``, ``sick_changes.py``). With ``--real`` the healthy ones are made of real series
(``real_nights.py``), and with ``--sizes`` half of the sick ones are of faults from small to large (``sick_sizes.py``).
Small drawn ones become a long table half of the time, judged by
``soakwatch import`` and ``soakwatch judge``; the others a record, judged by ``soakwatch judge``. What is read is the
verdict.json that the command writes.
Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np  # noqa: E402
from tests.bench.accuracy import real_lines, real_nights  # noqa: E402
from tests.bench.accuracy.curves import curves  # noqa: E402
from tests.bench.accuracy.lives import healthy  # noqa: E402
from tests.bench.accuracy.night import Night, write_run, write_table  # noqa: E402
from tests.bench.accuracy.sick import FAULTS  # noqa: E402
from tests.bench.accuracy.sick_sizes import SIZED  # noqa: E402
from tests.bench.accuracy.truth import Fault, Size, Stated, Truth  # noqa: E402
from tests.bench.accuracy.worst import Before, picture, written  # noqa: E402

from soakwatch.cli.main import run as command  # noqa: E402

_MAX_LINES = 150_000
WORST = ("fail", "inconclusive", "warn", "pass")


@dataclass(frozen=True, slots=True)
class Judged:
    """What the commands said of one run, and what is true of it (``truth`` is None for a healthy one)."""

    seed: int
    truth: Truth | None
    form: str
    hours: float
    cadence_s: float
    series: int
    traits: tuple[str, ...]
    verdict: str
    warned: bool
    rules: tuple[str, ...]
    named: bool
    false_cause: bool
    reason: str
    seconds: float
    said: str = ""
    sized: bool = False
    picture: str = ""

    @property
    def counts(self) -> bool:
        """Whether what was said of a sick run is scored: its fault is not small, nor one of those of a curve."""
        return self.truth is not None and not self.truth.small and not self.sized

    @property
    def wrong(self) -> int:
        """How wrongly it was judged: 0 for right, then a fault that fails unnamed, is left open, a healthy run that is
        not passed, one that fails, and a fault that passes."""
        if self.truth is None:
            return {"pass": 0, "fail": 4}.get(self.verdict, 3)
        if not self.counts:
            return 0
        return {"pass": 5, "fail": 0 if self.named and not self.false_cause else 1}.get(self.verdict, 2)

    @property
    def long(self) -> bool:
        """Whether it is one of the runs that have to pass: 12 h or more, a reading each minute or faster."""
        return self.hours >= 12 and self.cadence_s <= 60

    @property
    def outcome(self) -> str:
        """The verdict; a pass with warnings is one of its own."""
        return "warn" if self.verdict == "pass" and self.warned else self.verdict


def judged_json(night: Night, folder: Path) -> tuple[dict[str, object], str]:
    """The verdict document of the commands, and in which form they were given the run."""
    lines = sum(int(np.isfinite(value).sum()) for value in night.value.values())
    table = lines <= _MAX_LINES and night.seed % 2 == 0 and not {"polls", real_nights.REAL} & night.traits
    out = folder / "verdict.json"
    if table:
        path = folder / "night.csv"
        options = write_table(night, path)
        if os.environ.get("PLAIN_TABLES"):  # a Soakwatch whose import knows no phases, events and roles
            options = []
        called(["import", str(path), "--runs", str(folder / "runs"), *options])
        called(["judge", "last", "--runs", str(folder / "runs"), "--json", str(out)])
    else:
        write_run(night, folder / "record")
        called(["judge", str(folder / "record"), "--json", str(out)])
    return json.loads(out.read_text(encoding="utf-8")), "table" if table else "record"


def called(words: list[str]) -> None:
    """A command of Soakwatch. Raises RuntimeError with what it printed where it has no verdict."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = command(words)
    if code not in {0, 1, 3}:
        raise RuntimeError(f"soakwatch {' '.join(words)}: exit code {code}: {heard.getvalue()[-400:]}")


def stated_by(document: dict[str, object]) -> Stated:
    """The smallest growth that each finding of ``growth`` says it could have shown."""
    stated: Stated = {}
    for finding in _list(document, "findings"):
        smallest = finding["smallest_detectable"]
        if finding["rule"] == "growth" and isinstance(smallest, float) and finding["outcome"] != "fail":
            stated[str(finding["metric"]), str(finding["object"])] = smallest
    return stated


def _list(document: dict[str, object], key: str) -> list[dict[str, object]]:
    listed = document[key]
    assert isinstance(listed, list)
    return listed


def scored(night: Night, truth: Truth | None, document: dict[str, object], form: str, seconds: float) -> Judged:
    """What counts of a verdict."""
    findings = _list(document, "findings")
    verdict = str(document["verdict"])
    deciding = [f for f in findings if f["outcome"] == verdict] if verdict != "pass" else []
    said = [f"{f['rule']} of {f['metric']} {f['object']}: {f['reason']}" for f in deciding]
    failed = [f for f in findings if f["outcome"] == "fail"]
    named = truth is not None and any(
        truth.named_by(str(f["rule"]), str(f["metric"]), str(f["object"])) for f in failed
    )
    return Judged(
        seed=night.seed,
        truth=truth,
        form=form,
        hours=night.hours,
        cadence_s=night.cadence_s,
        series=len(night.value),
        traits=tuple(sorted(night.traits)),
        verdict=verdict,
        warned=any(f["outcome"] == "warn" for f in findings),
        rules=tuple(sorted({str(f["rule"]) for f in deciding})),
        named=named,
        false_cause=truth is not None and bool(failed) and _false_cause(truth, document, findings),
        reason=str(document["reason"]),
        seconds=seconds,
        said="; ".join(said[:1]),
    )


def _false_cause(truth: Truth, document: dict[str, object], findings: list[dict[str, object]]) -> bool:
    """Whether the first cause that is reported fuses several rules under a leader that is not the fault, and calls that
    likely."""
    for cause in _list(document, "causes"):
        if cause["outcome"] != "fail":
            continue
        places = cause["findings"]
        assert isinstance(places, list)
        lead = findings[places[0]]
        confidence = cause["confidence"]
        sure = len(places) > 1 and isinstance(confidence, float) and confidence >= 0.9
        return sure and not truth.named_by(str(lead["rule"]), str(lead["metric"]), str(lead["object"]))
    return False


Draw = Callable[[int], Night]
_ATTEMPTS = 40


def _any_growth(night: Night) -> Stated:
    """Some growth of whatever may leak, to see whether a leak can be done to a night before it is judged healthy."""
    memory = ("process.memory.usage", "system.memory.usage")
    return {(key.metric, key.object): 1.0 for key in night.value if key.metric in memory}


def _pictured(row: Judged, night: Night, before: Before | None, document: dict[str, object]) -> Judged:
    """With its picture, where it was judged wrong and pictures are wanted."""
    if before is None or not row.wrong:
        return row
    outcome = "fail" if row.verdict == "fail" else row.verdict
    accused = [
        (str(f["metric"]), str(f["object"])) for f in _list(document, "findings") if f["outcome"] == outcome != "pass"
    ]
    what = "healthy" if row.truth is None else row.truth.kind
    title = f"seed {row.seed}, {what}: {row.outcome}"
    return replace(row, picture=picture(night, before, row.truth, accused, title, row.said or row.reason))


def try_healthy(seed: int, keep: Path | None = None, *, draw: Draw = healthy, pictured: bool = False) -> Judged:
    """One healthy run, of what ``draw`` makes of the seed."""
    night = draw(seed)
    before = Before.of(night) if pictured else None
    with folder_for(keep) as folder:
        began = time.process_time()
        document, form = judged_json(night, folder)
        return _pictured(scored(night, None, document, form, time.process_time() - began), night, before, document)


def try_sick(
    seed: int,
    only: str = "",
    keep: Path | None = None,
    *,
    draw: Draw = healthy,
    faults_of: Mapping[str, tuple[Fault, ...]] = FAULTS,
    pictured: bool = False,
) -> Judged | None:
    """One sick run: the fault is drawn by the seed; None where no night near the seed can bear it."""
    groups = list(faults_of)
    group = groups[seed % len(groups)]
    turn = seed // len(groups)
    faults = [f for g in groups for f in faults_of[g]] if only else list(faults_of[group])
    for attempt in range(_ATTEMPTS * (1 if only else 3)):  # no night bears it: the next fault of its group
        rng = np.random.default_rng([15, seed, attempt])
        next_ = (turn + attempt // _ATTEMPTS) % len(faults)
        fault = faults[int(rng.integers(len(faults)))] if only else faults[next_]
        night = draw(int(rng.integers(2**31)) * 2 + seed % 2)
        before = Before.of(night) if pictured else None
        with folder_for(keep) as folder:
            stated: Stated = {}
            if "leak" in fault.__qualname__:
                if night.hours < 11 or night.cadence_s > 60 or fault(copy.deepcopy(night), _any_growth(night)) is None:
                    continue
                with folder_for(None) as healthy_before:
                    document, _ = judged_json(night, healthy_before)
                stated = stated_by(document)
            truth = fault(night, stated)
            if truth is None or (only and only not in truth.kind):
                continue
            began = time.process_time()
            document, form = judged_json(night, folder)
            row = scored(night, truth, document, form, time.process_time() - began)
            sized = any(fault in sizes for sizes in SIZED.values())
            return _pictured(replace(row, seed=seed, sized=sized), night, before, document)
    return None


@contextlib.contextmanager
def folder_for(keep: Path | None) -> Iterator[Path]:
    """The folder that is to be kept, else one that is removed."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as folder:
        yield Path(folder)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is tried: faults of a name, on drawn or real backgrounds (of a folder, a half of its hosts), with pictures
    of what is judged wrong."""

    only: str = ""
    keep: str = ""
    real: str = ""
    half: str = "reported"
    sizes: bool = False
    pictured: bool = False

    @property
    def draw(self) -> Draw:
        """What makes the healthy night of a seed."""
        return partial(real_nights.drawn, Path(self.real), self.half) if self.real else healthy

    @property
    def faults(self) -> Mapping[str, tuple[Fault, ...]]:
        """What is done to them, by group."""
        return {**FAULTS, **SIZED} if self.sizes else FAULTS


def _job(kind: str, seed: int, asked: Asked) -> Judged | str | None:
    keep = Path(asked.keep) if asked.keep else None
    try:
        if kind == "healthy":
            return try_healthy(seed, keep, draw=asked.draw, pictured=asked.pictured)
        return try_sick(seed, asked.only, keep, draw=asked.draw, faults_of=asked.faults, pictured=asked.pictured)
    except Exception as error:  # noqa: BLE001 - one run that breaks is a result, not the end of the bench
        return f"{kind} {seed}: {type(error).__name__}: {error}"


def by_background(rows: list[Judged]) -> Iterator[str]:
    """Outcomes of real nights by what they are made of: a run counts for each of its sets."""
    mark = f"{real_nights.REAL}: "
    made_of = sorted({trait for row in rows for trait in row.traits if trait.startswith(mark)})
    sets = sorted({name.partition(" of ")[2] for name in made_of})
    yield f"Made of {len(sets)} sets: {', '.join(sets)}.\n"
    for number, name in enumerate(made_of):
        of_set = list(table_of([row for row in rows if name in row.traits], lambda _: name.removeprefix(mark)))  # noqa: B023
        yield from of_set if number == 0 else of_set[2:]


def table_of(rows: list[Judged], name: Callable[[Judged], str]) -> Iterator[str]:
    """Outcomes by a property, as Markdown."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[name(row)].append(row)
    yield "| | runs | FAIL | INCONCLUSIVE | WARN | PASS | named | false cause | decided by |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for key, own in sorted(groups.items()):
        count = Counter(row.outcome for row in own)
        rules = Counter(rule for row in own for rule in row.rules)
        decided_by = ", ".join(f"{rule} {number}" for rule, number in rules.most_common(5))
        shown = " | ".join(str(count[outcome]) for outcome in WORST)
        yield (
            f"| {key} | {len(own)} | {shown} | {sum(row.named for row in own)} | "
            f"{sum(row.false_cause for row in own)} | {decided_by} |"
        )


def _kind(row: Judged) -> str:
    return "" if row.truth is None else row.truth.kind + (" (small)" if row.truth.small else "")


def _sized(row: Judged) -> Iterator[tuple[Size, bool]]:
    if row.truth is not None and row.truth.size is not None:
        yield row.truth.size, row.verdict == "fail" and row.named


def share(rows: list[Judged], chosen: Callable[[Judged], bool]) -> str:
    """How many of them, in percent."""
    return f"{100 * sum(map(chosen, rows)) / len(rows):.1f} % of {len(rows)}" if rows else "none tried"


def summary(well: list[Judged], ill: list[Judged]) -> Iterator[str]:
    """The figures that have floors."""
    whole = [row for row in well if row.long]
    scored_ill = [row for row in ill if row.counts]
    gross = [row for row in scored_ill if row.truth is not None and row.truth.gross]
    yield "| | measured | floor | aim |"
    yield "|---|---|---|---|"
    yield f"| healthy runs that FAIL | {share(well, lambda r: r.verdict == 'fail')} | 2 % | 0.5 % |"
    passed = share(whole, lambda r: r.verdict == "pass")
    yield f"| healthy runs of 12 h and more at 60 s or faster that PASS | {passed} | 85 % | 95 % |"
    yield f"| gross faults that FAIL | {share(gross, lambda r: r.verdict == 'fail')} | 99 % | 100 % |"
    drawn_out = [row for row in ill if row.sized and row.truth is not None and row.truth.gross]
    if drawn_out:
        failed = share(drawn_out, lambda r: r.verdict == "fail")
        yield f"| gross faults among those of the curves that FAIL | {failed} | | |"
    yield f"| sick runs that PASS | {share(scored_ill, lambda r: r.verdict == 'pass')} | 1 % | 0 |"
    for times, floor, aim in ((2, 85, 90), (3, 95, 97)):
        leaks = [row for row in scored_ill if row.truth is not None and row.truth.kind.startswith(f"leak x{times}")]
        right = share(leaks, lambda r: r.verdict == "fail" and r.named)
        yield f"| leaks of {times} times the smallest stated that FAIL, culprit named | {right} | {floor} % | {aim} % |"
    failing = [row for row in scored_ill if row.verdict == "fail"]
    yield f"| a false root cause called likely | {share(failing, lambda r: r.false_cause)} | 3 % | 1 % |"


def main() -> None:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=200, help="healthy runs")
    parser.add_argument("--sick", type=int, default=400, help="sick runs")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--only", default="", help="sick runs whose fault's name holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="a line for every run that was judged wrong")
    parser.add_argument("--keep", default="", help="folder that keeps what was judged (for one run)")
    parser.add_argument("--real", default="", help="folder of the real sets that the runs are made of")
    parser.add_argument("--half", default="reported", choices=("reported", "tuning", "all"), help="of the real hosts")
    parser.add_argument(
        "--sizes", action="store_true", help="three of seven sick runs are of faults from small to large"
    )
    parser.add_argument("--draw", nargs=2, metavar=("N", "FOLDER"), help="draw the N that were judged worst")
    options = parser.parse_args()
    asked = Asked(options.only, options.keep, options.real, options.half, options.sizes, options.draw is not None)
    if options.real:
        real_lines.lines(Path(options.real), options.half)  # read once, before the processes part
    jobs = [("healthy", options.seed + n) for n in range(options.healthy)]
    jobs += [("sick", options.seed + n) for n in range(options.sick)]
    results: list[Judged] = []
    broken: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(_job, kind, seed, asked) for kind, seed in jobs]
        for number, future in enumerate(futures):
            result = future.result()
            if isinstance(result, str):
                broken.append(result)
            elif result is not None:
                results.append(result)
            if sys.stderr.isatty() or number % 25 == 24:
                print(f"{number + 1} of {len(jobs)}", file=sys.stderr, flush=True)
    well, ill = [row for row in results if row.truth is None], [row for row in results if row.truth is not None]
    print("\n".join(summary(well, ill)))
    if well:
        print("\n## Healthy runs\n")
        print("\n".join(table_of(well, lambda row: f"{row.hours:g} h at {row.cadence_s:g} s")))
        print("\n".join(["", *by_background(well)] if options.real else table_of(well, lambda row: row.form)))
    if ill:
        print("\n## Sick runs\n")
        print("\n".join(table_of(ill, _kind)))
        print("\n## Detection by size\n")
        print("\n".join(curves((size, named) for row in ill for size, named in _sized(row))))
    print(f"\n{sum(row.seconds for row in results):.0f} s CPU for {len(results)} runs")
    if options.each:
        print()
        for row in sorted(results, key=lambda row: row.seed):
            kind = "healthy" if row.truth is None else row.truth.kind
            right = row.verdict == "pass" if row.truth is None else row.verdict == "fail" and row.named
            if row.false_cause or not (right or row.sized):
                cause = " FALSE CAUSE" if row.false_cause else ""
                print(
                    f"{row.seed} {row.form} {kind} ({row.hours:g} h, {row.cadence_s:g} s, {row.series} series): "
                    f"{row.outcome}{cause}, {', '.join(row.rules)}: {row.reason[:300]}; {row.said[:300]}"
                )
    if options.draw:
        worst = sorted((row for row in results if row.picture), key=lambda row: (-row.wrong, row.seed))
        chosen = worst[: int(options.draw[0])]
        names = [f"{'healthy' if row.truth is None else row.truth.kind}-{row.seed}-{row.outcome}" for row in chosen]
        plain = [re.sub(r"[^A-Za-z0-9.]+", "-", name) for name in names]
        written(Path(options.draw[1]), [(name, row.picture) for name, row in zip(plain, chosen, strict=True)])
    for text in broken:
        print(f"broken: {text}")


if __name__ == "__main__":
    main()
