"""Replays recorded devices through a real agent and the real reader, and compares with what is expected of each.

    python tests/bench/recordings/replay.py DIR                    a table per device, every difference, totals
    python tests/bench/recordings/replay.py DIR --only 'junos*' -v some devices, with the faults of their looks
    python tests/bench/recordings/replay.py DIR --json OUT         the same for programs
    python tests/bench/recordings/replay.py DIR --floors 0         only report; the exit code says if it could be done

DIR holds ``snmpsim/NAME.snmprec[.gz]`` and ``data/NAME.json[.gz]``, as a checkout of LibreNMS does below ``tests``.
Exit codes: 0 at or above the floors, 1 below, 2 nothing to replay. Differences that are understood stand in
``explained.yaml``, one by one, and do not count against the floors of memory and interfaces; processors have none.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.bench.recordings.compare import KINDS, Difference
from tests.bench.recordings.device import Pair, Result, run_device
from tests.bench.recordings.explained import BadExplanationsError, Explained, load_explained

PARTS: Final = ("processors", "mempools", "ports")
FLOORS: Final[Mapping[str, float]] = {"processors": 1.0, "mempools": 0.98, "ports": 1.0}
_EXPLAINED: Final = Path(__file__).parent / "explained.yaml"
_LIMIT_S: Final = 60.0


def pairs_in(folder: Path, globs: Sequence[str]) -> tuple[list[Pair], int]:
    """The recordings that have an expectation, by name, and how many have none."""
    root = folder / "tests" if (folder / "tests" / "snmpsim").is_dir() else folder
    pairs: list[Pair] = []
    alone = 0
    for file in sorted((root / "snmpsim").glob("*.snmprec*")):
        name = file.name.removesuffix(".gz").removesuffix(".snmprec")
        if globs and not any(fnmatchcase(name, glob) for glob in globs):
            continue
        candidates = [root / "data" / f"{name}{end}" for end in (".json", ".json.gz")]
        expectation = next((candidate for candidate in candidates if candidate.is_file()), None)
        if expectation is None:
            alone += 1
        else:
            pairs.append(Pair(name, file, expectation))
    return pairs, alone


def replay(
    pairs: Sequence[Pair], jobs: int, limit_s: float, work: Callable[[Pair, float], Result] = run_device
) -> list[Result]:
    """All devices, some at a time, each in its time.

    Where a process dies the devices that are left are tried one at a time, until it is known which one did it.
    """
    results: dict[str, Result] = {}
    workers = jobs
    while left := [pair for pair in pairs if pair.name not in results]:
        unfinished = _some(left, workers, limit_s, work, results)
        if unfinished is not None and workers == 1:
            results[unfinished] = Result(unfinished, "?", 0, "", "", {}, (), 0.0, "its process died")
            workers = jobs
        elif unfinished is not None:
            workers = 1
    return [results[pair.name] for pair in pairs]


def _some(
    pairs: Sequence[Pair], workers: int, limit_s: float, work: Callable[[Pair, float], Result], into: dict[str, Result]
) -> str | None:
    """Devices until a process dies; then the first that has not ended, which is the one that did it if it was alone."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pair.name: pool.submit(work, pair, limit_s) for pair in pairs}
        unfinished = None
        for name, future in futures.items():
            try:
                into[name] = future.result()
            except BrokenProcessPool:
                unfinished = unfinished or name
        return unfinished


def main(argv: list[str] | None = None) -> int:
    """Replay and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="only these recordings")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, metavar="SECONDS", help="time for one device")
    parser.add_argument("--engine", choices=("gufo", "pysnmp"), default="gufo", help="SNMP library (default: gufo)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write everything there as well")
    parser.add_argument("--explained", type=Path, default=_EXPLAINED, metavar="FILE", help="differences understood")
    parser.add_argument(
        "--floors", type=float, metavar="SHARE", help="one floor for all parts (default: the project's)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="also why each profile was chosen, and faults")
    options = parser.parse_args(argv)
    try:
        explained = load_explained(options.explained)
    except BadExplanationsError as error:
        print(error, file=sys.stderr)
        return 2
    pairs, alone = pairs_in(options.folder, options.only)
    if not pairs:
        print(f"{options.folder}: no snmpsim/NAME.snmprec[.gz] with a data/NAME.json[.gz] beside it", file=sys.stderr)
        return 2
    began = time.monotonic()
    results = replay(pairs, max(1, options.jobs), options.limit, functools.partial(run_device, engine=options.engine))
    floors = FLOORS if options.floors is None else dict.fromkeys(FLOORS, options.floors)
    lines, reached = report(results, explained, floors, verbose=options.verbose)
    print("\n".join(lines))
    print(f"\n{len(results)} devices in {time.monotonic() - began:.0f} s; {alone} recordings have no expectation")
    if options.json is not None:
        options.json.write_text(json.dumps(for_programs(results, explained), indent=1), encoding="utf-8")
    return 0 if reached else 1


def report(
    results: Sequence[Result], explained: Explained, floors: Mapping[str, float], *, verbose: bool
) -> tuple[list[str], bool]:
    """The table, the differences and the totals; and whether the floors are reached."""
    lines = [
        f"{'recording':34} {'system':14} {'profile':22} {'cpu':>9} {'memory':>9} {'ports':>11} {'rows':>6} {'s':>5}"
    ]
    for result in results:
        cells = [_cell(result, part) for part in PARTS]
        profile = result.profile or "FAILED"
        lines.append(
            f"{result.name[:34]:34} {result.system[:14]:14} {profile[:22]:22} "
            f"{cells[0]:>9} {cells[1]:>9} {cells[2]:>11} {result.rows:>6} {result.seconds:>5.1f}"
        )
    lines += ["", "by system:", *_by_system(results)]
    lines += ["", "differences (m: matched/expected; '=' explained):"]
    for result in results:
        if result.trouble:
            lines.append(f"! {result.name}: {result.trouble}")
        if verbose and result.why:
            lines.append(f"  {result.name}: profile {result.profile}: {result.why}")
        lines += [_line_of(result, difference, explained) for difference in result.differences]
        if verbose:
            lines += [f"  {result.name}: fault: {fault}" for fault in result.faults[:20]]
    lines += ["", "totals:"]
    unrecorded = sum(tally.unrecorded for result in results for tally in result.tallies.values())
    reached = not any(result.trouble for result in results)
    for part in PARTS:
        matched, expected, excused, extra = totals(results, part, explained)
        share = (matched + excused) / expected if expected else 1.0
        low = share < floors[part]
        reached = reached and not low
        lines.append(
            f"  {part:10} {matched}/{expected} match, {excused} explained, "
            f"{expected - matched - excused} not ({share:.2%}, floor {floors[part]:.0%}); {extra} of ours are extra"
            + (" BELOW THE FLOOR" if low else "")
        )
    left = Counter(
        difference.kind
        for result in results
        for difference in result.differences
        if explained.why(result.name, difference) is None
    )
    if left:
        lines.append(f"  of what is not: {', '.join(f'{left[kind]} {kind}' for kind in KINDS)}")
    if unrecorded:
        lines.append(f"  {unrecorded} ports are left out: the recordings hold no value of them")
    failed = sum(bool(result.trouble) for result in results)
    if failed:
        lines.append(f"  {failed} devices could not be compared")
    stale = explained.unused(results)
    lines += [f"  explained.yaml: {words}: no such difference any more" for words in stale]
    return lines, reached


def totals(results: Iterable[Result], part: str, explained: Explained) -> tuple[int, int, int, int]:
    """Matched, expected, explained and extra of one part."""
    matched = expected = excused = extra = 0
    for result in results:
        tally = result.tallies.get(part)
        if tally is None:
            continue
        matched += tally.matched
        expected += tally.expected
        extra += tally.extra
        excused += sum(explained.why(result.name, difference) is not None for difference in tally.differences)
    return matched, expected, excused, extra


def for_programs(results: Sequence[Result], explained: Explained) -> dict[str, object]:
    """Everything as plain data."""
    sums = {part: totals(results, part, explained) for part in PARTS}
    keys = ("matched", "expected", "explained", "extra")
    return {
        "totals": {part: dict(zip(keys, values, strict=True)) for part, values in sums.items()},
        "devices": [asdict(result) for result in results],
    }


def _cell(result: Result, part: str) -> str:
    tally = result.tallies.get(part)
    return "-" if tally is None else f"{tally.matched}/{tally.expected}" + (f"+{tally.extra}" if tally.extra else "")


def _by_system(results: Iterable[Result]) -> list[str]:
    sums: dict[str, Counter[str]] = {}
    profiles: dict[str, set[str]] = {}
    for result in results:
        line = sums.setdefault(result.system, Counter())
        profiles.setdefault(result.system, set()).add(result.profile or "failed")
        line["devices"] += 1
        for part, tally in result.tallies.items():
            line[part] += tally.matched
            line[f"{part} expected"] += tally.expected
    return [
        f"  {system:16} {line['devices']:>3} devices  "
        + "  ".join(f"{part} {line[part]}/{line[f'{part} expected']}" for part in PARTS)
        + f"  ({', '.join(sorted(profiles[system]))})"
        for system, line in sorted(sums.items())
    ]


def _line_of(result: Result, difference: Difference, explained: Explained) -> str:
    why = explained.why(result.name, difference)
    mark, end = ("=", f" = {why}") if why is not None else ("-", "")
    return f"{mark} {result.name} {difference.part} {difference.what}: {difference.why}{end}"


if __name__ == "__main__":
    sys.exit(main())
