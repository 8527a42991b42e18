"""What an event may expect: kinds of events that sources report, and ``outage`` of traffic; slips are caught here."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from soakwatch.core.registry import rules as rule_names
from soakwatch_model.event_catalogue import CATALOGUE
from soakwatch_rules.traits import traits_of

OUTAGE = "outage"
"""What ``event_impact`` measures: a period in which no traffic passed."""
KINDS = tuple(sorted([*(kind.name for kind in CATALOGUE if kind.expectable), OUTAGE]))
"""The kinds that probes, receivers and profiles tell, and what ``event_impact`` measures."""
_MEANT = ("process.restart", "process.exit", "device.crash", "core.dump", "kernel.oom", "kernel.panic", "link.down")
"""The kinds that may be abbreviated to their last word."""
_LIKE = 0.75


def slip(kind: str, own: Collection[str] = ()) -> str:
    """Why a kind of event that is expected must be a slip, with the one that was meant; empty if it may be right.

    ``own`` are the kinds that the plan or the run reports itself; a word like no known kind is taken as it is.

    >>> slip("process_restart")
    'expect: process_restart is a rule: write process.restart, the kind of event'
    >>> slip("reboott"), slip("restart"), slip("vrrp.change")
    ("expect: no event has the kind 'reboott'; did you mean 'reboot'?", \
"expect: no event has the kind 'restart'; did you mean 'process.restart'?", '')
    """
    if kind in KINDS or kind in own:
        return ""
    if kind in rule_names():
        if expected := traits_of(kind).expected_as:
            return f"expect: {kind} is a rule: write {expected}, the kind of event"
        return f"expect: {kind} is a rule: write a kind of event, such as {', '.join(KINDS[-5:-2])} or outage"
    part = next((known for known in _MEANT if kind == known.rpartition(".")[2]), None)
    near = get_close_matches(kind.lower().replace("_", "."), [*KINDS, *own], n=1, cutoff=_LIKE)
    meant = part or (near[0] if near else None)
    return "" if meant is None else f"expect: no event has the kind {kind!r}; did you mean {meant!r}?"
