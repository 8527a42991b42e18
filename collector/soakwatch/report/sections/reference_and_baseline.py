"""What the run was compared with: the highest rates of its generators, and the frozen baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence

from soakwatch.core.formatting import number, quantity, small_share, span_text, subject
from soakwatch.core.units import show_seconds
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.baseline import BaselineSnapshot, Level, parse_baseline
from soakwatch.judge.calibration import META as REFERENCE
from soakwatch.judge.ceiling import KINDS
from soakwatch.report.blocks import HTML, Block, Heading, ReportColumn, Table, Text
from soakwatch.report.page import Page

ORDER = 44
TITLE = "Reference and baseline"
_MAX_ROWS = 40
_HASH = 12
_CEILINGS = (
    ReportColumn("generator", "name"),
    ReportColumn("highest sustained rate", "number"),
    ReportColumn("loss", "number"),
    ReportColumn("CPU", "number"),
    ReportColumn("queue full", "number"),
    ReportColumn("at level", "number"),
)
_LEVELS = (
    ReportColumn("target", "name"),
    ReportColumn("object", "name"),
    *(ReportColumn(title, "number") for title in ("level", "noise", "5 % to 95 %", "period", "samples")),
)


def blocks(page: Page) -> Sequence[Block]:
    """The reference and the baseline; nothing for a run that had neither."""
    text = page.source.meta(BASELINE)
    baseline = parse_baseline(text)
    drawn = _reference(page.source.meta(REFERENCE))
    if baseline is not None:
        drawn += _baseline(baseline, json.loads(text or "{}")["sha256"][:_HASH])
    elif text:
        damaged = "The baseline was changed after it was frozen: its hash does not match."
        drawn.append(Text("", label=damaged, formats=HTML))
    return drawn


def _baseline(baseline: BaselineSnapshot, digest: str) -> list[Block]:
    span = span_text(baseline.window.begin_ns, baseline.window.end_ns)
    unlisted = max(len(baseline.levels) - _MAX_ROWS, 0) + baseline.left_out
    if baseline.run:
        origin = (
            f"This run has no baseline phase: the samples are those of run {baseline.run}, {span}, kept in this record."
        )
    else:
        origin = f"Frozen at the end of the baseline phase, {span}."
    others = f", and {unlisted} more are in the record" if unlisted else ""
    note = (
        f"{origin} The level is the median, the noise 1.4826 times the median absolute deviation. Only series that "
        f"rules compare with it are listed{others}. Hash: {digest}."
    )
    rows = [_row(level) for level in baseline.levels[:_MAX_ROWS]]
    return [
        Heading(f"The baseline{' of an earlier run' if baseline.run else ''}"),
        Table("The baseline", _LEVELS, rows, HTML, note=note),
    ]


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


def _reference(text: str | None) -> list[Block]:
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
        made, record, digest = shape["made"], shape["record"], frozen["sha256"][:_HASH]
    except (ValueError, TypeError, LookupError, AttributeError):
        return []
    words = "Generator capacity"
    note = f"Calibrated without the device on {made}, record {record}; hash {digest}."
    return [Heading(words), Table(words, _CEILINGS, rows, HTML, note=note)] if rows else []
