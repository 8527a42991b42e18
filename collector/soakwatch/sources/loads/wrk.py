"""Load of wrk or wrk2, from the text that each run prints at its end, appended to a file.

wrk prints nothing while it runs: each sample covers a whole run of wrk, at the time when its text was seen. Repeat
short runs (``while :; do wrk -d 10s --latency URL; done > /tmp/wrk.txt``), or print figures
from its Lua script and read them with ``command``.
Example: ``wrk: {file: /tmp/wrk.txt, interval: 5s}``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.result_files.result_file import FileConfig, follow
from soakwatch.sources.result_files.wrk import WrkReader


class Config(FileConfig):
    """Keys of the source ``wrk``."""


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following."""
    return await follow(config, site, stack, WrkReader(), restarts=False, program="wrk")
