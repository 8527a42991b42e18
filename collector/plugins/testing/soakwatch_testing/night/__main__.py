"""Runs nights: see ``tests/night --help`` in a checkout."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click

from soakwatch.core.units import show_seconds
from soakwatch_testing.night.checks import expected
from soakwatch_testing.night.faults import Kind, Night, draw
from soakwatch_testing.night.lived import again, live, one_of_many

_LENGTHS = (0.25, 0.5, 0.5, 0.5, 1.0, 1.0, 3.0)
"""Hours of the nights of ``--count``: short ones meet as many faults as long ones, and more of them fit into an
hour."""


@click.command(
    epilog="""\b
Examples:
  tests/night --seed 7
  tests/night --seed 7 --hours 4 --faults kill,disk
  tests/night --seed 1 --count 2000
  tests/night --seed 1234 --hours 1 --targets 3 --shrink
\b
Exit codes: 0 all of it held, 1 something did not, 2 usage error.
The last line is the digest of the record and that of the verdict: one seed gives the same on every machine
with the same versions of Soakwatch and its dependencies."""
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Which night, or the first of many.")
@click.option(
    "--hours",
    type=click.FloatRange(0.25, 168),
    help="Length of the night.  [default: 72; with --count drawn from a quarter of an hour to 3]",
)
@click.option(
    "--targets",
    type=click.IntRange(2, 20),
    help="Devices and their generator, about ten series each.  [default: 5; with --count drawn from 2 to 4]",
)
@click.option(
    "--faults",
    metavar="KIND,…",
    default=",".join(Kind),
    help=f"Kinds of faults that may befall it, or none: {', '.join(Kind)}.  [default: all]",
)
@click.option("--count", type=click.IntRange(1), default=1, help="So many nights, with the seeds from --seed on.")
@click.option("--jobs", type=click.IntRange(1), show_default="all cores", help="Processes for --count.")
@click.option("--shrink", is_flag=True, help="Of a night that fails: take faults away for as long as it still fails.")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Folder for the record and reports of the night."
)
def command(
    seed: int,
    hours: float | None,
    targets: int | None,
    faults: str,
    count: int,
    jobs: int | None,
    shrink: bool,  # noqa: FBT001 - click's signature
    keep: Path | None,
) -> None:
    """Live whole nights of a soak in virtual time, with all that may befall them, and check what must hold."""
    kinds = _kinds(faults)
    if count > 1:
        if keep is not None or shrink:
            raise click.UsageError("--keep and --shrink are for one night: leave --count out")
        sys.exit(_many(range(seed, seed + count), hours, targets, kinds, jobs or os.cpu_count() or 1))
    night = draw(seed, hours or 72.0, targets or 5, kinds)
    if shrink:
        sys.exit(_shrink(night))
    _tell(night)
    lived = live(night, keep=keep)
    click.echo(f"verdict: {lived.outcome} ({lived.reason})")
    held = f"{lived.lives} lives, {lived.cpu_s:.1f} s of CPU"
    if lived.twin:
        held += "; the verdict is that of the same night whose monitor lived"
    click.echo(held)
    for sentence in lived.broken:
        click.echo(f"BROKEN: {sentence}")
    click.echo(lived.digest)
    sys.exit(1 if lived.broken else 0)


def _kinds(text: str) -> tuple[Kind, ...]:
    names = [name.strip() for name in text.split(",") if name.strip() not in {"", "none"}]
    for name in names:
        if name not in set(Kind):
            raise click.UsageError(f"--faults: unknown kind {name!r}: choose from {', '.join(Kind)}, or none")
    return tuple(Kind(name) for name in names)


def _tell(night: Night) -> None:
    click.echo(f"seed {night.seed}: {night.hours:g} h, {night.targets} targets, a poll each {night.interval_s:g} s")
    for fault, words in expected(night):
        click.echo(f"  {fault.words}\n      should show: {words}")
    if not night.faults:
        click.echo("  nothing befalls it\n      should show: a pass")


def _drawn(seed: int, hours: float | None, targets: int | None, kinds: Sequence[Kind]) -> Night:
    chance = random.Random(seed ^ 0x5EED)  # noqa: S311 - no secret
    length, many = chance.choice(_LENGTHS), chance.randint(2, 4)
    return draw(seed, hours or length, targets or many, kinds)


def _many(seeds: range, hours: float | None, targets: int | None, kinds: Sequence[Kind], jobs: int) -> int:
    """Run many nights; prints the totals, and for each failing night the command that repeats it."""
    nights = [_drawn(seed, hours, targets, kinds) for seed in seeds]
    outcomes: Counter[str] = Counter()
    failed, cpu_s, lives, twins, began_s = 0, 0.0, 0, 0, time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for number, lived in enumerate(pool.map(one_of_many, nights, chunksize=4), 1):
            if isinstance(lived, str):
                failed += 1
                click.echo(f"BROKEN {lived}")
                continue
            outcomes[lived.outcome] += 1
            cpu_s, lives, twins = cpu_s + lived.cpu_s, lives + lived.lives, twins + lived.twin
            if lived.broken:
                failed += 1
                click.echo(f"BROKEN {again(lived.night)}")
                for sentence in lived.broken:
                    click.echo(f"    {sentence}")
            if number % 100 == 0:
                click.echo(f"{number} nights, {failed} broken", err=True)
    faults = Counter(fault.kind.value for night in nights for fault in night.faults)
    took_s = time.monotonic() - began_s
    click.echo(f"{len(nights)} nights of {sum(night.hours for night in nights):g} h in all: {failed} broken")
    click.echo("verdicts: " + ", ".join(f"{many} {name}" for name, many in outcomes.most_common()))
    click.echo("faults: " + ", ".join(f"{many} {name}" for name, many in faults.most_common()))
    click.echo(
        f"{lives} lives of monitors; {twins} verdicts held against those of the same night whose monitor lived;"
        f" {show_seconds(round(took_s))}, {cpu_s / len(nights):.1f} s of CPU a night"
    )
    return 1 if failed else 0


def _shrink(night: Night) -> int:
    """Remove faults one by one while the night still fails."""
    lived = live(night, reports=False)
    if not lived.broken:
        click.echo(f"seed {night.seed} holds: there is nothing to shrink")
        return 0
    smaller = True
    while smaller:
        smaller = False
        for fault in lived.night.faults:
            less = live(lived.night.without(fault), reports=False)
            if less.broken:
                lived, smaller = less, True
                break
    _tell(lived.night)
    for sentence in lived.broken:
        click.echo(f"BROKEN: {sentence}")
    click.echo(again(lived.night))
    return 1


if __name__ == "__main__":
    command()
