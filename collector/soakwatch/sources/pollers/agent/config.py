"""What an agent is told at the begin of a run: whose looks these are, how often, and what is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from soakwatch.sources.abc import SourceContext
from soakwatch_agent.framing import Object


def run_name(site: SourceContext) -> str:
    """The name of a run for its agents: a monitor that was restarted goes on under the same one."""
    folder = site.folder.resolve()
    digest = hashlib.blake2b(str(folder).encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{folder.name[:80]}/{site.target[:80]}/{digest}"


def settings_body(
    site: SourceContext, probes: Sequence[str] | None, core_folders: Sequence[str], interval_ns: int, phase_ns: int
) -> Object:
    """The settings as the agent takes them (settings.py there)."""
    return {
        "interval_ns": interval_ns,
        "phase_ns": phase_ns,
        "processes": [[each.name, each.how, each.what] for each in site.processes],
        "interfaces": None if site.interfaces is None else list(site.interfaces),
        "core_folders": list(core_folders),
        "probes": None if probes is None else list(probes),
    }
