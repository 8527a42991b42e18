# ruff: noqa: E501 - lines of HTML are as long as they are
"""The files of the run: the output of its scripts, and the evidence that was taken when something was found."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from soakwatch.core.units import show_bytes
from soakwatch.record import ArtifactEntry
from soakwatch.report.blocks import BRIEF, Block, Text
from soakwatch.report.page import Page
from soakwatch_rules.wording.words import counted, some

ORDER = 62
TITLE = "Files"
_MAX_ROWS, _MAX_NAMES = 200, 3
_MAX_FILE_BYTES, _MAX_PAGE_BYTES = 256 << 10, 4 << 20  # of one file that is in the page, and of all of them
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p class="soft">Output of scripts and hooks, the scripts of the plan, and evidence from the devices, kept in the record. <code>soakwatch report RUN --artifacts DIR</code> writes all files to a folder.</p>
<div class="card scroll"><table>{{ m.caption("Files of the run") }}
<thead><tr><th>time (UTC)</th><th>file</th><th>about</th><th class="num">size</th></tr></thead><tbody>
{% for row in rows %}
<tr><td class="keep">{{ row.entry.time_ns|utc if row.entry.time_ns else "–" }}</td>
<td>{% if row.text is not none %}<details><summary class="name">{{ row.entry.name }}</summary><pre>{{ row.text }}</pre></details>{% elif row.link %}<a class="name" download="{{ row.file }}" href="{{ row.link }}">{{ row.entry.name }}</a>{% else %}<span class="name">{{ row.entry.name }}</span>{% endif %}</td>
<td>{{ row.entry.kind }}{{ ": " if row.entry.kind and row.entry.about }}{{ row.entry.about }}</td><td class="num">{{ row.entry.size|bytes }}</td></tr>
{% endfor %}
</tbody></table>{% if more %}<p class="soft">{{ more }} more are in the record.</p>{% endif %}</div>
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The files by time: texts folded, small others as links, the rest by name; nothing where there is none."""
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
    """One sentence where the files cannot be opened: how many there are, and the names of the first."""
    text = files_text(page.source.artifact_entries())
    return (Text(text, formats=BRIEF),) if text else None


def files_text(entries: Sequence[ArtifactEntry]) -> str:
    """How many files there are, their size and the first few names; empty where there is none."""
    if not entries:
        return ""
    size = show_bytes(sum(entry.size for entry in entries))
    return f"{counted(len(entries), 'file')} in the record ({size}): {some([e.name for e in entries], _MAX_NAMES)}"


def _is_text(entry: ArtifactEntry, data: bytes) -> bool:
    return entry.media.startswith("text/") and b"\0" not in data
