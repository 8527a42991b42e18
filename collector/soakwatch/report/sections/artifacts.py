# ruff: noqa: E501 - lines of HTML are as long as they are
"""The files of the run: what its scripts said, and the evidence that was taken when something was found."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from soakwatch.record import ArtifactEntry
from soakwatch.report.page import Page

ORDER = 62
TITLE = "Files"
_MOST, _LONGEST, _ALL = 200, 256 << 10, 4 << 20  # rows; bytes of one that is in the page, and of all of them
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p class="soft">Kept in the record: what scripts and hooks said, and evidence of devices. <code>soakwatch report RUN --artifacts DIR</code> writes all of them out.</p>
<div class="card scroll"><table>{{ m.caption("Files of the run") }}
<thead><tr><th>time (UTC)</th><th>file</th><th>of</th><th class="num">size</th></tr></thead><tbody>
{% for one in rows %}
<tr><td class="keep">{{ one.entry.time_ns|utc if one.entry.time_ns else "–" }}</td>
<td>{% if one.text is not none %}<details><summary class="name">{{ one.entry.name }}</summary><pre>{{ one.text }}</pre></details>{% elif one.link %}<a class="name" download="{{ one.file }}" href="{{ one.link }}">{{ one.entry.name }}</a>{% else %}<span class="name">{{ one.entry.name }}</span>{% endif %}</td>
<td>{{ one.entry.kind }}{{ ": " if one.entry.kind and one.entry.about }}{{ one.entry.about }}</td><td class="num">{{ one.entry.size|bytes }}</td></tr>
{% endfor %}
</tbody></table>{% if more %}<p class="soft">{{ more }} more are in the record.</p>{% endif %}</div>
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The files by time: texts folded, small others as links, the rest by name; nothing where there is none."""
    entries = page.source.artifact_entries()
    if not entries:
        return None
    rows, room = [], _ALL
    for entry in entries[:_MOST]:
        text, link = None, ""
        if entry.size <= min(_LONGEST, room):
            room -= entry.size
            data = page.source.artifact(entry.name).data
            if _is_text(entry, data):
                text = data.decode("utf-8", "replace")
            else:
                link = f"data:application/octet-stream;base64,{base64.b64encode(data).decode()}"
        rows.append({"entry": entry, "text": text, "link": link, "file": entry.name.rpartition("/")[2]})
    return {"rows": rows, "more": max(0, len(entries) - _MOST)}


def _is_text(entry: ArtifactEntry, data: bytes) -> bool:
    return entry.media.startswith("text/") and b"\0" not in data
