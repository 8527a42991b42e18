# ruff: noqa: E501 - lines of HTML are as long as they are
"""What the run was compared with: the highest rates of its generators, and the frozen baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping

from soakwatch.core.formatting import number, quantity, small_share, span_text, subject
from soakwatch.core.units import show_seconds
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.baseline import Level, frozen_in
from soakwatch.judge.calibration import META as REFERENCE
from soakwatch.judge.ceiling import KINDS
from soakwatch.report.page import Page

ORDER = 44
TITLE = "Reference and baseline"
_MAX_ROWS = 40
_HASH = 12
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if ceilings %}<h3>Generator capacity</h3><div class="card scroll"><table>{{ m.caption("Generator capacity") }}
<thead><tr><th>generator</th><th class="num">highest sustained rate</th><th class="num">loss</th><th class="num">CPU</th><th class="num">queue full</th><th class="num">at level</th></tr></thead><tbody>
{% for row in ceilings %}<tr><td class="name">{{ row[0] }}</td>{% for cell in row[1:] %}<td class="num">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p class="soft">Calibrated without the device on {{ made }}, record <span class="name">{{ record }}</span>; hash <span class="name">{{ reference_hash }}</span>.</p></div>
{% endif %}
{% if baseline %}<h3>The baseline{% if baseline.run %} of an earlier run{% endif %}</h3><div class="card scroll"><table>{{ m.caption("The baseline") }}
<thead><tr><th>target</th><th>object</th><th class="num">level</th><th class="num">noise</th><th class="num">5 % to 95 %</th><th class="num">period</th><th class="num">samples</th></tr></thead><tbody>
{% for row in rows %}<tr><td class="name">{{ row[0] }}</td><td class="name">{{ row[1] }}</td>{% for cell in row[2:] %}<td class="num">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p class="soft">{% if baseline.run %}This run has no baseline phase: the samples are those of run <span class="name">{{ baseline.run }}</span>, {{ span }}, kept in this record.{% else %}Frozen at the end of the baseline phase, {{ span }}.{% endif %}
The level is the median, the noise 1.4826 times the median absolute deviation. Only series that rules compare with it are listed{% if unlisted %}, and {{ unlisted }} more are in the record{% endif %}. Hash: <span class="name">{{ baseline_hash }}</span>.</p></div>
{% endif %}
{% if damaged %}<p><b>{{ damaged }}</b></p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The reference and the baseline; None for a run that had neither."""
    reference, text = _reference(page.source.meta(REFERENCE)), page.source.meta(BASELINE)
    baseline = frozen_in(text)
    damaged = "The baseline was changed after it was frozen: its hash does not match." if text and not baseline else ""
    if reference is None and baseline is None and not damaged:
        return None
    facts: dict[str, object] = {"ceilings": (), "baseline": baseline, "damaged": damaged, **(reference or {})}
    if baseline is not None:
        facts["rows"] = [_row(level) for level in baseline.levels[:_MAX_ROWS]]
        facts["unlisted"] = (
            len(baseline.levels) - _MAX_ROWS + baseline.left_out
            if len(baseline.levels) > _MAX_ROWS
            else baseline.left_out
        )
        facts["span"] = span_text(baseline.window.begin_ns, baseline.window.end_ns)
        facts["baseline_hash"] = json.loads(text or "{}")["sha256"][:_HASH]
    return facts


def _row(level: Level) -> tuple[str, ...]:
    low, *_, high = level.quantiles
    about = subject(level.metric, level.object)
    return (
        level.target,
        about,
        quantity(level.median, level.unit),
        quantity(level.sd, level.unit),
        f"{quantity(low, level.unit)} to {quantity(high, level.unit)}",
        "none" if level.period_s is None else show_seconds(level.period_s),
        number(level.count),
    )


def _reference(text: str | None) -> Mapping[str, object] | None:
    try:
        frozen = json.loads(text or "{}")
        shape, rows = frozen["reference"], []
        for name in frozen["used"]:
            for kind in KINDS:
                ceiling = shape["generators"][name].get(kind.name)
                if ceiling is not None:
                    rows.append(
                        (
                            name,
                            quantity(ceiling["rate"], kind.unit),
                            small_share(ceiling.get("loss")),
                            small_share(ceiling.get("cpu")),
                            number(ceiling.get("queue_full")),
                            small_share(ceiling.get("level")),
                        )
                    )
        return {
            "ceilings": rows,
            "made": shape["made"],
            "record": shape["record"],
            "reference_hash": frozen["sha256"][:_HASH],
        }
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
