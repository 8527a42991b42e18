"""Load of k6, by what it writes with --out json=FILE or --out csv=FILE while it runs.

Requests, failures, bytes and dropped iterations (``load.queue_full``: the generator had no user free to send) are
counted, rates and percentiles are of each tick of ``interval``, users are as k6 reports them (``vus``). The times are
those of k6. It writes once a second; a tick is reported when a line of a later second was seen.
Example: ``k6: {file: /tmp/k6.json, interval: 2s}`` beside ``k6 run --out json=/tmp/k6.json script.js``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.result_files.k6 import K6Names, K6Reader
from soakwatch.sources.result_files.result_file import TimedFileConfig, begin_of, follow


class Config(TimedFileConfig):
    """Keys of the source ``k6``."""

    requests: Annotated[str, Field(default="http_reqs", description="k6 metric that counts requests")]
    failed: Annotated[str, Field(default="http_req_failed", description="k6 metric that is 1 for a failed request")]
    duration: Annotated[str, Field(default="http_req_duration", description="k6 metric of the latency (ms)")]


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following."""
    names = K6Names(config.requests, config.failed, config.duration)
    reader = K6Reader(round(site.interval_s * 1e9), begin_of(site), names)
    return await follow(config, site, stack, reader, program="k6")
