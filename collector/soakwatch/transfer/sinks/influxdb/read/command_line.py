"""InfluxDB addresses given to ``judge`` and ``import``, with every message for the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from soakwatch.runs.catalog import STAMP
from soakwatch.transfer.importing.command_line import NAMES, given_options, texts_of
from soakwatch.transfer.importing.files import ImportedRun
from soakwatch.transfer.importing.rule_coverage import growth_of, notes_on_rules
from soakwatch.transfer.sinks.influxdb.read.address import Database, database_of
from soakwatch_model.roles import DUT

_TAKEN = frozenset({"meanings", "target", "role", "growths"})


def name_of(database: Database) -> str:
    """The name of the run made from what is read, without the time stamp of the original run.

    >>> name_of(database_of("influxdb://h/b?run=20261121T200000Z-fw-7.2"))
    'fw-7.2'
    """
    return STAMP.sub("", database.run or "") or database.bucket


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
    """Make a record in ``folder``. Returns the imported series, or None for a run of Soakwatch.

    ``say`` takes messages for the user. Raises DataError, UsageError and RecordError.
    """
    database = database_of(address)
    options = given_options({n: given.get(n) for n in NAMES if n not in _TAKEN})
    if options:
        raise click.UsageError(f"{', '.join(options)}: only for tables, and {database.shown} is a database")
    if database.run is not None:
        from soakwatch.transfer.sinks.influxdb.read.own_run import read_run

        mapped = given_options(given)
        if mapped:
            raise click.UsageError(f"{', '.join(mapped)}: a run of Soakwatch is read as it is")
        read = read_run(database, folder, progress)
        say(f"read {read.readings} samples and {read.polls} polls of {read.run} from {database.shown}: complete")
        if read.grain_ns > 1:
            say(
                f"the times of the samples were cut to {read.grain_ns / 1000:g} µs when they were sent (precision):"
                " figures may differ from the record's in their last digits"
            )
        return None
    from soakwatch.sources.tables.options import growths, roles
    from soakwatch.transfer.sinks.influxdb.read.foreign import Wanted, import_series
    from soakwatch.transfer.sinks.influxdb.read.mapping import mapping_of

    every, single = growths(texts_of(given, "growths"))
    if single:
        raise click.UsageError("--growth COLUMN=…: write it into the --map file")
    role, of_targets = roles(texts_of(given, "role"))
    if of_targets:
        raise click.UsageError("--role TARGET=…: write it into the --map file")
    target = given.get("target")
    wanted = Wanted(
        mapping_of(texts_of(given, "meanings")),
        target if isinstance(target, str) else None,
        role or DUT,
        every or (growth_of(rules) if command == "judge" else "up"),
        () if command == "judge" else tuple(rules),
    )
    imported = import_series(
        database, folder, name or name_of(database), wanted, ["soakwatch", command, address], progress
    )
    notes = [*imported.notes, *(notes_on_rules(database.shown, imported.series, rules) if command == "judge" else ())]
    for note in notes:
        say(note)
    return imported
