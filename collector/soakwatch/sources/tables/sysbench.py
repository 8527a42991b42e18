"""Converts sysbench's interval lines (``--report-interval``, as text or by ``report_csv``) to a table.

It has transactions, their latency and errors; queries are proportional to transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TEXT = re.compile(
    r"\[\s*(?P<second>\d+)s\s*\]\s*thds:\s*\d+\s+tps:\s*(?P<tps>[\d.]+)\s+qps:\s*[\d.]+(?:\s+\(r/w/o:[^)]*\))?"
    r"\s+lat\s*\(ms,\s*(?P<share>\d+)%\):\s*(?P<latency>[\d.]+)(?:\s+err/s:?\s*(?P<errors>[\d.]+))?"
)
_CSV = re.compile(
    r"(?P<second>\d+),\d+,(?P<tps>[\d.]+),[\d.]+,[\d.]+,[\d.]+,[\d.]+,(?P<latency>[\d.]+),"
    r"(?P<errors>[\d.]+),[\d.]+\s*"
)
_SIGN = "sysbench "


def is_sysbench(lines: Iterable[str]) -> bool:
    """True if these first lines are sysbench output."""
    return any(line.startswith(_SIGN) or _TEXT.search(line) is not None for line in lines)


def as_table(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a CSV table; all other lines are dropped.

    >>> text = ["Threads started!", "[ 5s ] thds: 8 tps: 43.90 qps: 878.05 lat (ms,95%): 50.2 err/s: 0.10"]
    >>> list(as_table(text))
    ['elapsed,tps,latency p95 (ms),error rate (/s)\\n', '5,43.90,50.2,0.10\\n']
    """
    headed = False
    for line in lines:
        match = _TEXT.search(line) or _CSV.fullmatch(line)
        if match is None:
            continue
        fields = match.groupdict()
        if not headed:
            headed = True
            yield f"elapsed,tps,latency p{fields.get('share') or '95'} (ms),error rate (/s)\n"
        yield f"{fields['second']},{fields['tps']},{fields['latency']},{fields['errors'] or ''}\n"
