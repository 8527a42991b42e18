"""The files of the run: the output of its scripts, and the evidence that was taken when something was found."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial

from soakwatch.core.units import show_bytes
from soakwatch.record import ArtifactEntry
from soakwatch.report.blocks import BRIEF, Block, Layout, Text
from soakwatch.report.page import Page
from soakwatch_rules.wording.quantities import counted, first_few

ORDER = 62
TITLE = "Files"
_MAX_ROWS, _MAX_NAMES = 200, 3
_MAX_FILE_BYTES, _MAX_PAGE_BYTES = 256 << 10, 4 << 20  # of one file that is in the page, and of all of them


def _facts(page: Page) -> Mapping[str, object] | None:
    """The files by time: texts folded, other small ones as links, the rest by name; None if there is none."""
    entries = page.source.artifact_entries()
    if not entries:
        return None
    rows, room = [], _MAX_PAGE_BYTES
    for entry in entries[:_MAX_ROWS]:
        text, link = None, ""
        if entry.size <= min(_MAX_FILE_BYTES, room):
            room -= entry.size
            data = page.source.artifact(entry.name).data
            if _is_text(entry, data):
                text = data.decode("utf-8", "replace")
            else:
                link = f"data:application/octet-stream;base64,{base64.b64encode(data).decode()}"
        rows.append({"entry": entry, "text": text, "link": link, "file": entry.name.rpartition("/")[2]})
    return {"rows": rows, "more": max(0, len(entries) - _MAX_ROWS)}


def blocks(page: Page) -> Sequence[Block] | None:
    """The files; in formats that cannot open them one sentence: how many there are, and the names of the first."""
    text = files_text(page.source.artifact_entries())
    return (Layout("artifacts", partial(_facts, page)), Text(text, formats=BRIEF)) if text else None


def files_text(entries: Sequence[ArtifactEntry]) -> str:
    """How many files there are, their size and the first few names; empty where there is none."""
    if not entries:
        return ""
    size = show_bytes(sum(entry.size for entry in entries))
    return f"{counted(len(entries), 'file')} in the record ({size}): {first_few([e.name for e in entries], _MAX_NAMES)}"


def _is_text(entry: ArtifactEntry, data: bytes) -> bool:
    return entry.media.startswith("text/") and b"\0" not in data
