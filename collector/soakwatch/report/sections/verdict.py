"""The verdict in one line, a line for each target, and the facts of the run."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page
from soakwatch.report.sections.findings import cause_anchor
from soakwatch.report.show import number, share_text, utc
from soakwatch.units import show_bytes, show_seconds
from soakwatch_rules.causes import Cause, lag
from soakwatch_rules.rule import Outcome

ORDER = 10
TITLE = ""
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<div class="card banner {{ verdict.outcome.value }}">
<h1>{{ m.badge(verdict.outcome) }} {{ verdict.run }}</h1>
<p>{{ verdict.reason }}</p>
</div>
<dl class="facts">
{% for name, value in run %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>
{% endfor %}
</dl>
<div class="card scroll"><table>
<thead><tr><th>target</th><th>role</th><th>verdict</th><th>why</th><th>findings</th></tr></thead>
<tbody>
{% for target, counts in targets %}
<tr><td class="name"><a href="#target-{{ loop.index }}">{{ target.target }}</a></td><td>{{ target.role }}</td>
<td>{{ m.badge(target.outcome) }}</td><td class="why">{{ target.reason }}</td><td class="count">{{ counts }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if causes %}
<div class="card scroll"><table>
<thead><tr><th>outcome</th><th>first seen (UTC)</th><th>after the first</th><th>target</th>
<th>what happened</th></tr></thead>
<tbody>
{% for cause, link, lag in causes %}
<tr><td>{{ m.badge(cause.outcome) }}</td><td class="keep">{{ cause.begin_ns|utc if cause.timeline else "–" }}</td>
<td class="keep">{{ lag }}</td><td class="name">{{ cause.target or "several" }}</td>
<td class="why"><a href="#{{ link }}">{{ cause.headline|truncate(300) }}</a></td></tr>
{% endfor %}
</tbody></table>{% if more %}<p class="soft">{{ more }} more causes are told below.</p>{% endif %}</div>
{% endif %}
"""
_MOST_CAUSES = 10


def facts(page: Page) -> Mapping[str, object]:
    """The verdict; times, sizes and the coverage of the whole run."""
    verdict, counts = page.verdict, page.source.counts()
    due = sum(ledger.due for ledger in verdict.ledgers)
    got = sum(ledger.got for ledger in verdict.ledgers)
    run = [
        ("begin (UTC)", utc(verdict.window.begin_ns)),
        ("end (UTC)", utc(verdict.window.end_ns)),
        ("duration", show_seconds(verdict.window.seconds)),
        ("samples", number(counts.samples)),
        ("polls answered", f"{number(got)} of {number(due)} ({share_text(got / due)})" if due else "none was due"),
        ("record on disk", show_bytes(counts.bytes)),
    ]
    moments = [cause.begin_ns for cause in verdict.causes if cause.timeline and cause.outcome is Outcome.FAIL]
    first_ns = min(moments, default=None)
    if first_ns is not None:
        run.append(("first failure seen (UTC)", utc(first_ns)))
    causes = [
        (cause, cause_anchor(page, number), _lag(cause, first_ns))
        for number, cause in enumerate(verdict.causes[:_MOST_CAUSES])
    ]
    return {
        "causes": causes,
        "more": len(verdict.causes) - len(causes),
        "verdict": verdict,
        "run": run,
        "targets": [(target, _counts(page, target.target)) for target in verdict.targets],
    }


def _lag(cause: Cause, first_ns: int | None) -> str:
    """How long after the first failure it was seen; what came before that, or has no moment, has no lag."""
    known = first_ns is not None and cause.timeline and cause.begin_ns >= first_ns
    return lag(first_ns or 0, cause.begin_ns) if known else "–"


def _counts(page: Page, target: str) -> str:
    own = [finding.outcome for finding in page.verdict.findings if finding.target == target]
    return ", ".join(f"{own.count(outcome)} {outcome.value}" for outcome in Outcome if own.count(outcome)) or "none"
