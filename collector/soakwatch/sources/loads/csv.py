"""Any CSV that grows: exports of Ixia, Spirent and others, with a mapping of columns.

Columns are named by their headers (or by numbers from 1 on) and become metrics of the catalogue; units in headers,
decimal commas, quotes, BOM and UTF-16 are understood, and a file may be truncated, rotated, rewritten, or appear later.
Times are those of the lines (``time: column``): with their own zone, or in that of ``tz``; seconds from the start of
a test count from when its first line was seen. If the newest line is farther than ``bound`` from now, the generator's
clock is wrong and the source fails; ``time: arrival`` takes the time at which a line was seen.
Without ``columns``, headers are read as ``soakwatch judge FILE.csv`` reads them. Only whole lines are read.
Example: ``csv: {file: /exports/ports.csv, tz: Europe/Berlin, interval: 5s, columns: {"Frames Tx.": {metric:
load.port.tx.packets, labels: {port: "{Stat Name}"}}, "Tx. Rate (Kbps)": {metric: load.tx.bit.rate, total: true}}}``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated, Self

from pydantic import Field, model_validator

from soakwatch.core.regex import user_regex
from soakwatch.core.validation import Short
from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.result_files.columns import ColumnMap
from soakwatch.sources.result_files.result_file import TimedFileConfig, begin_of, follow
from soakwatch.sources.result_files.table import TableFormat, TableReader, in_plan_words
from soakwatch.sources.result_files.times import TimeFormat
from soakwatch.sources.result_files.zone import ZoneName
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, checked
from soakwatch_model.roles import GENERATOR


class Config(TimedFileConfig):
    """Keys of the source ``csv``."""

    columns: Annotated[
        dict[str, Annotated[ColumnMap, Short("metric")]],
        Field(default_factory=dict, description="meaning of columns: a metric, or metric, labels, unit, total"),
    ]
    where: Annotated[
        dict[str, str], Field(default_factory=dict, description="lines that count: columns and regular expressions")
    ]
    time_column: Annotated[str | None, Field(default=None, description="column of the times; default: by its name")]
    time_format: Annotated[
        str | None, Field(default=None, description="s, ms, us, ns, elapsed, iso, or a strptime format")
    ]
    tz: Annotated[
        ZoneName | None, Field(default=None, description="time zone of times without one, such as Europe/Berlin")
    ]
    delimiter: Annotated[str | None, Field(default=None, description="separator of cells, where it is not detected")]
    decimal: Annotated[str | None, Field(default=None, description="decimal sign, where it is not detected")]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        try:
            checked(Options(delimiter=self.delimiter, decimal=self.decimal))
        except DataError as error:
            raise ValueError(in_plan_words(str(error))) from None
        for form in self.where.values():
            user_regex(form)
        return self


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following."""
    table = TableFormat(
        str(config.file),
        site.target,
        config.columns,
        config.where,
        config.time_column,
        TimeFormat(config.time_format, config.tz),
        config.delimiter,
        config.decimal,
    )
    reader = TableReader(table, begin_of(site), arrival=config.time == "arrival")
    return await follow(config.file, config, site, stack, reader, load=site.role == GENERATOR, restarts=False)
