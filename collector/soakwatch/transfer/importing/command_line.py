"""The options for reading a table, shared by all commands that read one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Meaning, checked, growths, kinds, meaning, pairs, roles
from soakwatch.transfer.importing.timeline import ImportOptions, timeline
from soakwatch_model.roles import DUT

F = TypeVar("F", bound=Callable[..., object])

_TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".gz")
_OPTIONS = (
    click.option(
        "--map",
        "meanings",
        multiple=True,
        metavar="COLUMN=METRIC[,LABEL=VALUE][:UNIT]",
        help="Metric of a column ('soakwatch metrics' lists them); for a database "
        "MEASUREMENT.FIELD=METRIC, or FILE.yaml. May be repeated.",
    ),
    click.option(
        "--unit",
        "units",
        multiple=True,
        metavar="COLUMN=UNIT",
        help="Unit of a column: %, KB, KiB, MB, ms, pps … May be repeated.",
    ),
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        metavar="COLUMN=KIND",
        help="Kind of a column outside of the catalogue: gauge or counter.  [gauge]",
    ),
    click.option(
        "--growth",
        "growths",
        multiple=True,
        metavar="[COLUMN=]up|down",
        help="Bad direction of a lasting change in columns outside of the catalogue.  [up]",
    ),
    click.option("--by", "by", multiple=True, metavar="COLUMN", help="Column that distinguishes objects (host, pod)."),
    click.option("--skip", "skip", multiple=True, metavar="COLUMN", help="Leave a column out."),
    click.option("--time", "time", metavar="COLUMN", help="The column of times, by name or number."),
    click.option(
        "--time-format",
        "time_format",
        metavar="FORMAT",
        help="s, ms, us, ns, elapsed, iso, or a strptime format, where it is not detected.",
    ),
    click.option("--tz", "zone", metavar="ZONE", help="Time zone of times without one, such as Europe/Berlin.  [UTC]"),
    click.option("--start", "start", metavar="TIME", help="Start of a table whose times count from its start."),
    click.option("--target", "target", metavar="NAME", help="Name of the target.  [name of the file]"),
    click.option(
        "--role",
        "role",
        multiple=True,
        metavar="[TARGET=]ROLE",
        help="Role of the target, or of one of several: dut, generator, monitor. May be repeated.  [dut]",
    ),
    click.option(
        "--phase",
        "phases",
        multiple=True,
        metavar="NAME=BEGIN..END",
        help="A phase of the run: times, or durations from its first sample (soak=30m..22h, "
        "recovery=22h..). May be repeated.",
    ),
    click.option(
        "--events",
        "events",
        metavar="FILE",
        help="File of events: CSV or YAML with kind and begin, and optionally end, target, object, expect "
        "(reboot=1), within.",
    ),
    click.option("--delimiter", "delimiter", metavar="SIGN", help="Separator of cells, where it is not detected."),
    click.option("--decimal", "decimal", metavar="SIGN", help="Decimal sign, where it is not detected."),
)
NAMES = (
    "meanings",
    "units",
    "kinds",
    "growths",
    "by",
    "skip",
    "time",
    "time_format",
    "zone",
    "start",
    "target",
    "role",
    "phases",
    "events",
    "delimiter",
    "decimal",
)


def table_options(command: F) -> F:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_options(given: Mapping[str, object]) -> tuple[str, ...]:
    """The given options by their names on the command line."""
    written = {
        "meanings": "--map",
        "units": "--unit",
        "kinds": "--kind",
        "growths": "--growth",
        "zone": "--tz",
        "phases": "--phase",
        "time_format": "--time-format",
    }
    return tuple(written.get(n, f"--{n}") for n in NAMES if given.get(n))


def options_of(given: Mapping[str, object], growth: str | None) -> ImportOptions:
    """Parses the options; ``growth`` is the direction if none is given. Raises DataError."""
    every, single = growths(texts_of(given, "growths"))
    role, of_targets = roles(texts_of(given, "role"))
    zone = _text(given, "zone")
    return checked(
        ImportOptions(
            target=_text(given, "target"),
            role=role or DUT,
            roles=of_targets,
            time=_text(given, "time"),
            time_format=_text(given, "time_format"),
            zone=zone,
            start_ns=_start_ns(_text(given, "start")),
            delimiter=_sign(_text(given, "delimiter")),
            decimal=_text(given, "decimal"),
            meanings=_meanings(texts_of(given, "meanings")),
            units=pairs(texts_of(given, "units"), "--unit", "rss=KB"),
            kinds=kinds(texts_of(given, "kinds")),
            growth=every or growth,
            growths=single,
            by=texts_of(given, "by"),
            skip=frozenset(texts_of(given, "skip")),
            timeline=timeline(texts_of(given, "phases"), _text(given, "events"), zone),
        )
    )


def is_table(text: str) -> bool:
    """True if this names a table, not a run: standard input, or a file that is not a record."""
    if text == "-":
        return True
    path = Path(text)
    if not path.is_file():
        return not path.exists() and path.name.lower().endswith(_TABLE_SUFFIXES)
    with path.open("rb") as file:
        return not file.read(16).startswith(b"SQLite format 3")


def _meanings(texts: tuple[str, ...]) -> dict[str, Meaning]:
    return dict(map(meaning, texts))


def _start_ns(text: str | None) -> int | None:
    if text is None:
        return None
    from soakwatch.sources.tables.times import TimeOptions, time_reading

    try:
        moments = time_reading([text], TimeOptions(), "--start").read([text])
    except DataError:
        raise DataError(f"--start {text} is not a time: write one such as 2026-11-21T20:00:00Z") from None
    if bool(moments.bad[0]):
        raise DataError(f"--start {text} is not a time: write one such as 2026-11-21T20:00:00Z")
    return int(moments.time_ns[0])


def _sign(text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text or "", text)


def _text(given: Mapping[str, object], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) else None


def texts_of(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    """The texts of an option that may be repeated; () without it."""
    value = given.get(name)
    return tuple(map(str, value)) if isinstance(value, tuple) else ()
