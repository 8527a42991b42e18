"""InfluxDB on the command line: what an address gives ``judge`` and ``import``, with every sentence for a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from soakwatch.importing.command_line import NAMES, given_options
from soakwatch.importing.files import ImportedRun
from soakwatch.importing.judged import growth_of, notes_on_rules
from soakwatch.sinks.influxdb.read.address import Place, place_of

_STAMP = re.compile(r"^\d{8}T\d{6}Z-")
_TAKEN = frozenset({"meanings", "target", "role", "growths"})


def name_of(place: Place) -> str:
    """The name of the run that is made of a place; when a run was made is no part of it.

    >>> name_of(place_of("influxdb://h/b?run=20261121T200000Z-fw-7.2"))
    'fw-7.2'
    """
    return _STAMP.sub("", place.run or "") or place.bucket


def import_database(
    address: str,
    folder: Path,
    name: str | None,
    given: Mapping[str, object],
    rules: Sequence[str],
    command: str,
    progress: Callable[[str], None],
    say: Callable[[str], None],
) -> ImportedRun | None:
    """Make a record in ``folder``; the series where they were somebody's, None for a run of Soakwatch.

    ``say`` hears what a person must know. Raises DataError, UsageError and RecordError.
    """
    place = place_of(address)
    told = given_options({n: given.get(n) for n in NAMES if n not in _TAKEN})
    if told:
        raise click.UsageError(f"{', '.join(told)}: only for tables, and {place.shown} is a database")
    if place.run is not None:
        from soakwatch.sinks.influxdb.read.own_run import read_run

        mapped = given_options(given)
        if mapped:
            raise click.UsageError(f"{', '.join(mapped)}: a run of Soakwatch is read as it is")
        found = read_run(place, folder, progress)
        say(f"read {found.readings} readings and {found.polls} polls of {found.run} from {place.shown}: all there are")
        if found.grain_ns > 1:
            say(
                f"the times of the readings were cut to {found.grain_ns / 1000:g} µs when they were sent (precision):"
                " figures may differ from the record's in their last digits"
            )
        return None
    from soakwatch.sinks.influxdb.read.foreign import Wanted, import_series
    from soakwatch.sinks.influxdb.read.mapping import mapping_of
    from soakwatch.sources.tables.options import growths, roles

    every, single = growths(_texts(given, "growths"))
    if single:
        raise click.UsageError("--growth COLUMN=…: say it in the file of --map")
    role, of_targets = roles(_texts(given, "role"))
    if of_targets:
        raise click.UsageError("--role TARGET=…: say it in the file of --map")
    target = given.get("target")
    wanted = Wanted(
        mapping_of(_texts(given, "meanings")),
        target if isinstance(target, str) else None,
        role or "dut",
        every or (growth_of(rules) if command == "judge" else "up"),
        () if command == "judge" else tuple(rules),
    )
    made = import_series(place, folder, name or name_of(place), wanted, ["soakwatch", command, address], progress)
    notes = [*made.notes, *(notes_on_rules(place.shown, made.series, rules) if command == "judge" else ())]
    for note in notes:
        say(note)
    return made


def _texts(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = given.get(name)
    return tuple(map(str, value)) if isinstance(value, tuple) else ()
