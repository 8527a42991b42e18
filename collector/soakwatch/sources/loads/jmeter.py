"""JMeter by its result file (-l FILE: JTL as CSV or XML), while it is written.

Requests, failures and bytes are counted, rates and percentiles are of each tick of ``interval``, users are the
threads of all groups. JMeter buffers some kilobytes before it writes (``-Jjmeter.save.saveservice.autoflush=true``
writes at once): with few requests ``bound`` and ``silence`` must be longer than that takes. Dates need ``tz``.
Example: ``jmeter: {file: /tmp/soak.jtl, interval: 5s}`` beside ``jmeter -n -t soak.jmx -l /tmp/soak.jtl``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.result_files.jmeter import JmeterReader
from soakwatch.sources.result_files.result_file import TimedFileConfig, begin_of, follow
from soakwatch.sources.result_files.zone import ZoneName, zone_of


class Config(TimedFileConfig):
    """Keys of the source ``jmeter``."""

    tz: Annotated[
        ZoneName | None, Field(default=None, description="time zone of times without one, such as Europe/Berlin")
    ]


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following."""
    reader = JmeterReader(round(site.interval_s * 1e9), begin_of(site), zone_of(config.tz))
    return await follow(config, site, stack, reader, program="JMeter")
