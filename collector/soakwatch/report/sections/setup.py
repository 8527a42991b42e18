# ruff: noqa: E501 - lines of HTML are as long as they are
"""The set-up: versions, what each machine is, and what the rule ``setup`` says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.units import show_bytes
from soakwatch.report.blocks import CONSOLE, Block, Text
from soakwatch.report.page import Page
from soakwatch_rules.rule import Outcome

ORDER = 46
TITLE = "Set-up"
_LONG, _BRIEF = 30, 4
_RULE, _AMISS = "setup", {Outcome.FAIL, Outcome.WARN}
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if flags %}
<div class="card warn"><b>Check this</b><ul>{% for flag in flags %}<li class="flag">! {{ flag }}</li>{% endfor %}</ul></div>
{% endif %}
{% if versions %}<h3>Versions</h3><div class="card"><table class="pairs">{{ m.caption("Versions") }}<tbody>
{% for name, value in versions %}<tr><th>{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
{% for target, groups in machines %}
<h3>Machine of <span class="name">{{ target }}</span></h3>
<div class="card">
{% for group in groups %}
<details{% if not group.long %} open{% endif %}><summary>{{ group.name }}{% if group.long %} ({{ group.size }}){% endif %}</summary>
<div class="scroll"><table{% if not group.columns %} class="pairs"{% endif %}>{{ m.caption(group.name) }}
{% if group.columns %}<thead><tr><td></td>{% for column in group.columns %}<th>{{ column }}</th>{% endfor %}</tr></thead>{% endif %}
<tbody>{% for name, cells in group.rows %}<tr><th class="name">{{ name }}</th>{% for cell in cells %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div></details>
{% endfor %}
</div>
{% else %}<p>The record has no description of the machines.</p>
{% endfor %}
"""

Tree = str | int | float | bool | None | list["Tree"] | dict[str, "Tree"]


def facts(page: Page) -> Mapping[str, object]:
    """Readable tables of the JSON that the record holds; text that is no JSON is shown as it is."""
    machines = [
        (target, _groups(tree if isinstance(tree, dict) else {"machine": tree}))
        for target, tree in sorted(_object(page.source.meta("fingerprint")).items())
    ]
    flags = [f"{f.target}: {f.reason}" for f in page.verdict.findings if f.rule == _RULE and f.outcome in _AMISS]
    versions = sorted((name, _text(value)) for name, value in _object(page.source.meta("versions")).items())
    return {"flags": flags, "versions": versions, "machines": machines}


def blocks(page: Page) -> Sequence[Block]:
    """Each machine in a line, and the versions of the monitor."""
    machines = _machines(page)
    drawn: list[Block] = [Text(words, label=name, formats=CONSOLE) for name, words in machines[:_BRIEF]]
    if len(machines) > _BRIEF:
        drawn.append(Text(f"… and {len(machines) - _BRIEF} more machines in the report", tone="soft", formats=CONSOLE))
    versions = _object(page.source.meta("versions"))
    known = [f"{name} {_text(versions[name])}" for name in ("soakwatch", "python") if name in versions]
    if known:
        drawn.append(Text(", ".join(known), label="monitor", formats=CONSOLE))
    return drawn


def _machines(page: Page) -> list[tuple[str, str]]:
    """Each machine in a line: what its devices reported of themselves, else its fingerprint."""
    identities: dict[str, dict[str, str]] = {}
    for event in page.events:
        if event.kind == IDENTITY:
            identities.setdefault(event.target, {}).update(event.detail)
    machines = [
        (target, ", ".join(detail[key] for key in ("system", "model", "version", "name") if detail.get(key)))
        for target, detail in sorted(identities.items())
    ]
    for target, tree in sorted(_object(page.source.meta("fingerprint")).items()):
        if target not in identities:
            machines.append((target, ", ".join(_hardware(tree))))
    return [(target, words) for target, words in machines if words]


def _hardware(tree: Tree) -> list[str]:
    host, cpu, memory = (_branch(tree, name) for name in ("host", "cpu", "memory"))
    facts = [str(host[name]) for name in ("os", "kernel") if host.get(name)]
    if cpu.get("model"):
        facts.append(f"{cpu['model']}, {cpu.get('logical_cores', '?')} cores")
    total = memory.get("total_bytes")
    facts += [show_bytes(total)] if isinstance(total, int | float) else []
    return facts


def _branch(tree: Tree, name: str) -> dict[str, Tree]:
    branch = tree.get(name) if isinstance(tree, dict) else None
    return branch if isinstance(branch, dict) else {}


def _object(text: str | None) -> dict[str, Tree]:
    if not text:
        return {}
    try:
        read: Tree = json.loads(text)
    except (ValueError, RecursionError):
        return {"unreadable": text}
    return read if isinstance(read, dict) else {"": read}


def _groups(tree: dict[str, Tree]) -> list[dict[str, object]]:
    """A table for each branch of the machine; single leaves are gathered in the first."""
    single: dict[str, Tree] = {name: value for name, value in tree.items() if not isinstance(value, dict)}
    groups = []
    if single:
        groups.append(_pairs("general", single))
    for name, branch in tree.items():
        if not isinstance(branch, dict) or not branch:
            continue
        inner = {key: value for key, value in branch.items() if isinstance(value, dict)}
        groups.append(_columns(name, inner) if len(inner) == len(branch) else _pairs(name, branch))
    return groups


def _pairs(name: str, branch: dict[str, Tree]) -> dict[str, object]:
    rows = [(key, [text]) for key, text in _leaves(branch, "")]
    return _group(name, [], rows)


def _columns(name: str, branch: dict[str, dict[str, Tree]]) -> dict[str, object]:
    """One row an item (a network card), one column a property."""
    columns = list(dict.fromkeys(key for item in branch.values() for key in item))
    rows = [
        (key, [_text(item[column]) if column in item else "–" for column in columns]) for key, item in branch.items()
    ]
    return _group(name, columns, rows)


def _group(name: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> dict[str, object]:
    shown = [column.replace("_", " ") for column in columns]
    return {
        "name": name.replace("_", " "),
        "columns": shown,
        "rows": rows,
        "size": len(rows),
        "long": len(rows) > _LONG,
    }


def _leaves(tree: Tree, path: str) -> list[tuple[str, str]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in _leaves(value, f"{path} {key}".strip())]
    return [(path, _text(tree))]


def _text(value: Tree) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not known"
    if isinstance(value, dict):
        if "max_link_width" in value or "max_link_speed" in value:
            return _link(value)
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    return str(value)


def _link(link: dict[str, Tree]) -> str:
    """A PCIe link in words: what it runs at, and what it could."""
    now = f"x{_text(link.get('current_link_width'))} at {_text(link.get('current_link_speed'))} GT/s"
    best = f"x{_text(link.get('max_link_width'))} at {_text(link.get('max_link_speed'))} GT/s"
    return now if now == best else f"{now}, could do {best}"
