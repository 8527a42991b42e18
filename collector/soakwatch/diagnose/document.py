"""Looks and their reading as JSON: what ``soakwatch diagnose --json`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence

from soakwatch.diagnose.compare import Change, Grown
from soakwatch.diagnose.look import Look, look_json
from soakwatch.diagnose.reading import Reading
from soakwatch.diagnose.wording import reading_words
from soakwatch_model.tree import Tree


def looks_document(looks: Sequence[Look], read: Reading) -> dict[str, Tree]:
    """The looks at one process with what they show. Amounts are bytes, times UTC ns, lengths seconds."""
    last, apart = looks[-1], read.difference
    return {
        "target": last.target,
        "process": last.process,
        "pid": last.pid,
        "runtime": last.runtime.value,
        "reading": read.kind.value,
        "undecided": None if read.why is None else read.why.value,
        "text": reading_words(read, last.runtime),
        "seconds": None if apart is None else round(apart.seconds, 3),
        "resident": None if apart is None else apart.resident,
        "in_use": None if apart is None else apart.in_use,
        "held": None if apart is None else apart.held,
        "free": read.free,
        "free_in_pieces": read.in_pieces,
        "suspects": [_site(site) for site in read.sites],
        "changes": {}
        if apart is None
        else {
            "memory": [_change(row) for row in apart.mapped],
            "files": [_change(row) for row in apart.files],
            "threads": [_change(row) for row in apart.threads],
        },
        "looks": [json.loads(look_json(look)) for look in looks],
    }


def _site(site: Grown) -> dict[str, Tree]:
    return {
        "kind": site.kind.value,
        "name": site.name,
        "bytes": site.bytes,
        "objects": site.count,
        "share": round(site.share, 4),
        "own": site.own,
        "program": site.program,
    }


def _change(change: Change) -> dict[str, Tree]:
    return {"kind": change.name, "before": change.before, "after": change.after}
