"""Attaches to a run by folder, name or URL."""

from __future__ import annotations

from pathlib import Path

from soakwatch.runs.attached import LocalRun, SoakRun
from soakwatch.runs.catalog import DEFAULT_RUNS, find_run


def attach(
    run: str | Path, *, token: str | None = None, ca: str | None = None, runs: str | Path = DEFAULT_RUNS
) -> SoakRun:
    """Attach to a run by its folder, record file, name below ``runs`` or ``last``, or by the URL of a server.

    A URL is ``http://HOST:PORT`` (the newest run there) or ``http://HOST:PORT/api/runs/NAME``; ``token`` refers to the
    server's token (``env:NAME``, ``file:PATH``; default: the variable SOAKWATCH_TOKEN), ``ca`` is a CA bundle. Raises
    RecordError for a missing run, SoakwatchError for a server that does not answer.
    """
    text = str(run)
    if text.startswith(("http://", "https://")):
        from soakwatch.web.client import remote_run

        return SoakRun(remote_run(text, token, ca))
    return SoakRun(LocalRun(find_run(text, Path(runs))))
