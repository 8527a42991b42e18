"""Load of locust, by the history that it writes with --csv NAME while it runs.

Requests and failures are counted, rates are of the totals since the row before, percentiles those of locust (of about
the last ten seconds), users as it reports them. The times are those of locust, to the second.
Example: ``locust: {file: /tmp/soak_stats_history.csv}`` beside ``locust --headless --csv /tmp/soak …``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.result_files.locust import LocustReader
from soakwatch.sources.result_files.result_file import TimedFileConfig, begin_of, follow


class Config(TimedFileConfig):
    """Keys of the source ``locust``."""


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following."""
    return await follow(config, site, stack, LocustReader(begin_of(site)), program="locust")
