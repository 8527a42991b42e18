"""How many runs are enough: how much the runs that were compared vary, at most, and how many more a claim needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import natural, subject
from soakwatch.report.blocks import Block, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_model.finding import Finding
from soakwatch_rules.detectors.run_difference import RunDifference
from soakwatch_rules.wording.quantities import counted, percent

ORDER = 25
TITLE = "How many runs are enough"
ALWAYS = True
_RULE = RunDifference.name
_BRIEF = 20


def blocks(page: Page) -> Sequence[Block] | None:
    """A row for each figure that was compared with earlier runs, and the sentence of the one that needs most."""
    compared = [f for f in page.verdict.findings if f.rule == _RULE and "repeat_runs" in f.numbers]
    if not compared:
        return None
    compared.sort(key=lambda f: (RunDifference.metrics.index(f.metric), natural(f.target), natural(f.object)))
    numbers = compared[0].numbers
    band, wanted = numbers["repeat_band"], numbers.get("repeat_wanted")
    columns = [ReportColumn("figure"), ReportColumn("runs", "number"), ReportColumn("spread (sd)", "number")]
    columns += [ReportColumn("at most (95 %)", "number"), ReportColumn(f"all within ± {100 * band:g} %")]
    columns += (
        []
        if wanted is None
        else [ReportColumn(f"runs for ± {100 * wanted:g} %", "number"), ReportColumn("more", "number")]
    )
    rows = [_row(finding, with_claim=wanted is not None) for finding in compared]
    most = max(compared, key=lambda f: (f.numbers.get("repeat_needed", float("inf")), f.numbers["repeat_worst"]))
    table = Table("How alike the runs are", tuple(columns), rows, brief=_BRIEF)
    return (Text(_sentence(most)), table)


def _row(finding: Finding, *, with_claim: bool) -> list[str]:
    numbers = finding.numbers
    within = "yes" if numbers["repeat_within"] > 0 else "no"
    row = [
        f"{finding.target} {subject(finding.metric, finding.object)}",
        f"{numbers['repeat_runs']:.0f}",
        _share(numbers, "repeat_sd"),
        _share(numbers, "repeat_sd_upper"),
        f"{within} (worst {percent(numbers['repeat_worst'])})",
    ]
    if not with_claim:
        return row
    needed = numbers.get("repeat_needed")
    return [*row, "not known" if needed is None else f"{needed:.0f}", _more(numbers)]


def _share(numbers: Mapping[str, float], name: str) -> str:
    return percent(numbers[name]) if name in numbers else "–"


def _more(numbers: Mapping[str, float]) -> str:
    needed = numbers.get("repeat_needed")
    if numbers.get("repeat_enough", 0.0) > 0:
        return "0"
    return "–" if needed is None else f"{max(needed - numbers['repeat_runs'], 1):.0f}"


def _sentence(finding: Finding) -> str:
    """The figure that needs most runs: how many there are, how much they vary at most, how many more it takes."""
    numbers = finding.numbers
    runs, what = counted(int(numbers["repeat_runs"]), "run"), subject(finding.metric, finding.object)
    spread = (
        f"vary by {_share(numbers, 'repeat_sd')} (sd), by {_share(numbers, 'repeat_sd_upper')} at most (95 %)"
        if "repeat_sd" in numbers
        else "do not show how much runs vary"
    )
    head = f"{runs} of {finding.target} {what} {spread}"
    if "repeat_wanted" not in numbers:
        return f"{head}."
    claim = f"its median to within ± {100 * numbers['repeat_wanted']:g} %"
    if numbers["repeat_enough"] > 0:
        return f"{head}; they are enough to know {claim}."
    if "repeat_needed" not in numbers:
        return f"{head}; how many are enough to know {claim} is not known."
    return f"{head}; to know {claim} takes {numbers['repeat_needed']:.0f}: {_more(numbers)} more."
