# ruff: noqa: E501 - lines of HTML are as long as they are
"""What the run was held against: what its generators could send, and the frozen baseline."""

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
_SHOWN = 40
_HASH = 12
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if ceilings %}<h3>What the generators could send</h3><div class="card scroll"><table>{{ m.caption("What the generators could send") }}
<thead><tr><th>generator</th><th class="num">highest rate held</th><th class="num">lost there</th><th class="num">CPU there</th><th class="num">queue full</th><th class="num">at level</th></tr></thead><tbody>
{% for row in ceilings %}<tr><td class="name">{{ row[0] }}</td>{% for cell in row[1:] %}<td class="num">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p class="soft">Calibrated without the device, {{ made }}, in the record <span class="name">{{ record }}</span>; frozen in this record with the hash <span class="name">{{ reference_hash }}</span>.</p></div>
{% endif %}
{% if baseline %}<h3>The baseline{% if baseline.run %} of an earlier run{% endif %}</h3><div class="card scroll"><table>{{ m.caption("The baseline") }}
<thead><tr><th>target</th><th>of</th><th class="num">level</th><th class="num">noise</th><th class="num">5 % to 95 %</th><th class="num">period</th><th class="num">readings</th></tr></thead><tbody>
{% for row in rows %}<tr><td class="name">{{ row[0] }}</td><td class="name">{{ row[1] }}</td>{% for cell in row[2:] %}<td class="num">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p class="soft">{% if baseline.run %}This run has no baseline phase of its own: the readings are those of the run <span class="name">{{ baseline.run }}</span>, {{ span }}, which are kept in this record.{% else %}Frozen when the baseline phase was over, {{ span }}.{% endif %}
The level is the median, the noise 1.4826 times the median absolute deviation. Only series that rules hold against it are listed{% if unlisted %}, and {{ unlisted }} more are in the record{% endif %}. Hash: <span class="name">{{ baseline_hash }}</span>.</p></div>
{% endif %}
{% if damaged %}<p><b>{{ damaged }}</b></p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The reference and the baseline; None for a run that had neither."""
    reference, text = _reference(page.source.meta(REFERENCE)), page.source.meta(BASELINE)
    baseline = frozen_in(text)
    damaged = "The frozen baseline has another hash than it says: somebody changed it." if text and not baseline else ""
    if reference is None and baseline is None and not damaged:
        return None
    made: dict[str, object] = {"ceilings": (), "baseline": baseline, "damaged": damaged, **(reference or {})}
    if baseline is not None:
        made["rows"] = [_row(level) for level in baseline.levels[:_SHOWN]]
        made["unlisted"] = (
            len(baseline.levels) - _SHOWN + baseline.left_out if len(baseline.levels) > _SHOWN else baseline.left_out
        )
        made["span"] = span_text(baseline.window.begin_ns, baseline.window.end_ns)
        made["baseline_hash"] = json.loads(text or "{}")["sha256"][:_HASH]
    return made


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
        told = json.loads(text or "{}")
        shape, rows = told["reference"], []
        for name in told["used"]:
            for kind in KINDS:
                one = shape["generators"][name].get(kind.name)
                if one is not None:
                    rows.append(
                        (
                            name,
                            quantity(one["rate"], kind.unit),
                            small_share(one.get("loss")),
                            small_share(one.get("cpu")),
                            number(one.get("queue_full")),
                            small_share(one.get("level")),
                        )
                    )
        return {
            "ceilings": rows,
            "made": shape["made"],
            "record": shape["record"],
            "reference_hash": told["sha256"][:_HASH],
        }
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
