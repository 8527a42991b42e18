"""The tables of the report on a terminal: chain of moments, headroom, doubts, coverage, load, set-up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from soakwatch.core.formatting import extent, quantity, share_text, source_name, subject
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.verdict import NOT_OBSERVABLE, NOT_REQUIRED, Verdict
from soakwatch.record.model import source_label
from soakwatch.report.changed import changed
from soakwatch.report.compared import Beside, compared, figures_of
from soakwatch.report.headroom import rooms
from soakwatch.report.load import Figure
from soakwatch.report.losses import losses_of, within
from soakwatch.report.page import Page
from soakwatch.report.paper import ConsoleWriter, Part
from soakwatch.report.sections import chain
from soakwatch.report.sparks import strip
from soakwatch.report.terminal_findings import head
from soakwatch.report.told import about
from soakwatch_rules.causes import Cause, doubts
from soakwatch_rules.rule import Finding, InconclusiveReason, Ledger, Outcome
from soakwatch_rules.traits import traits_of
from soakwatch_rules.wording.words import counted

_MOMENTS, _ROOMS, _DOUBTS, _SOURCES, _STREAMS, _MACHINES, _CHANGES = 12, 12, 10, 40, 6, 4, 8
_STRETCHES = 2000
_FIGURES = 20
_WIDE = 100


def print_chain(paper: ConsoleWriter, page: Page) -> None:
    """What broke first and what followed, with lags and the load then; left out where nothing happened."""
    told = chain.facts(page)
    rows = cast("list[chain.Row]", told["rows"])
    lasting = cast("list[tuple[int, Cause]]", told["lasting"])
    if not rows and not lasting:
        return
    paper.title("What broke first, and what followed")
    shown = rows[:_MOMENTS]
    if paper.terminal and paper.width < _WIDE:
        for row in shown:
            load = f" (load {row.load})" if row.load else ""
            paper.say(f"{row.when[:19]}  ", (row.lag, "bold"), "  ", _whose(row), f"  {row.text}{load}", hang=4)
    elif shown:
        _moments(paper, shown)
    more = len(rows) - len(shown) + cast("int", told["more"])
    if more > 0:
        paper.say((f"… and {more} more moments in the report", "dim"))
    for _, cause in lasting[:_DOUBTS]:
        what = about(page.verdict.findings[cause.leading])
        paper.say(
            head(cause.outcome, cause.outcome.value), f"  {cause.target or 'several'}  throughout: {what}", hang=4
        )


def _whose(row: chain.Row) -> Part:
    """Whose moment it is; of an event and of a silence, which are no findings, with a sign of its own."""
    name = row.target or "several"
    return head(row.outcome, name) if row.outcome is not None else (f"· {name}", "dim")


def _moments(paper: ConsoleWriter, rows: Sequence[chain.Row]) -> None:
    """A table; the day stands once where it is the same."""
    one_day = len({row.when[:10] for row in rows}) == 1
    loaded = any(row.load for row in rows)
    cells: list[list[Part]] = []
    for row in rows:
        when = row.when[11:19] if one_day else row.when[:19]
        text: Part = (row.text, "bold") if row.first else row.text
        cells.append([when, (row.lag, "bold"), *([row.load or "-"] if loaded else []), _whose(row), text])
    day = f"{rows[0].when[:10]} UTC" if one_day else "UTC"
    paper.table([day, "lag", *(["load then"] if loaded else []), "target", "what happened"], cells, right=[1])


def print_headroom(paper: ConsoleWriter, page: Page) -> None:
    """How much of each limit was left, the worst first, and when it is reached if it goes on."""
    found, _ = rooms(page.source, page.verdict.findings)
    near = [room for room in found if room.target != "monitor" and room.room < 1]
    if not found:
        return
    paper.title("Headroom to each limit")
    rows: list[list[Part]] = []
    for room in near[:_ROOMS]:
        where = f"{room.target} {subject(*room.about)} ({room.of})"
        ahead = f"; {room.forecast}" if room.forecast else ""
        rows.append([(room.room_text, "bold red" if room.room < 0 else ""), room.measured, room.limit, where + ahead])
    if rows:
        paper.table(["headroom", "highest", "limit", "of what, and when if it goes on"], rows, right=[0, 1, 2])
    if len(near) > _ROOMS:
        paper.say((f"… and {len(near) - _ROOMS} limits with more headroom in the report", "dim"))
    if whole := sum(room.room >= 1 for room in found):
        paper.say((f"{counted(whole, 'more limit')} with ample headroom", "dim"))


def print_doubts(paper: ConsoleWriter, findings: Sequence[Finding], causes: Sequence[Cause]) -> None:
    """What could not be judged and why, a line for each reason: what is in doubt (``causes``), and what does not
    apply."""
    idle = [place for place, f in enumerate(findings) if f.outcome is Outcome.NOT_APPLICABLE]
    rows = doubts(findings, [place for cause in causes for place in cause.findings])
    beside = doubts(findings, idle)
    if not rows and not beside:
        return
    waived = {place for cause in causes if cause.waived for place in cause.findings}
    paper.title("What could not be judged")
    for row in rows[:_DOUBTS]:
        coarse = all(findings[place].why is InconclusiveReason.CADENCE for place in row.places)
        note = f" {NOT_OBSERVABLE if coarse else NOT_REQUIRED}" if waived.issuperset(row.places) else ""
        paper.say(head(row.outcome, row.outcome.value), f"  {', '.join(row.targets)}  {row.words}{note}", hang=4)
        paper.say((f"of {row.about or 'the target'}", "dim"), indent=4)
    if len(rows) > _DOUBTS:
        paper.say((f"… and {len(rows) - _DOUBTS} more of these in the report", "dim"))
    for row in beside[:_DOUBTS]:
        paper.say(head(row.outcome, "does not apply"), f"  {', '.join(row.targets)}  {row.words}", hang=4)
    if len(beside) > _DOUBTS:
        paper.say((f"… and {len(beside) - _DOUBTS} more that do not apply", "dim"))


def print_coverage(paper: ConsoleWriter, verdict: Verdict, page: Page | None) -> None:
    """The account of each source; on a terminal with a strip of the time in which its polls were lost."""
    if not paper.terminal:
        for ledger in verdict.ledgers:
            answered, rest = _account(ledger)
            paper.say(f"coverage {source_name(ledger)}: {answered} ({share_text(ledger.coverage)}), {rest}")
        return
    if not verdict.ledgers:
        return
    paper.title("Coverage")
    width = 30 if paper.width >= _WIDE else 12
    strips = {} if page is None else _strips(paper, page, width)
    rows: list[list[Part]] = []
    ranked = sorted(verdict.ledgers, key=lambda one: one.coverage if one.coverage is not None else 0.0)
    for ledger in ranked[:_SOURCES]:
        whole = ledger.coverage is not None and ledger.coverage >= 1
        share: Part = (share_text(ledger.coverage), "" if whole else "yellow" if ledger.got else "bold red")
        cells: list[Part] = [source_name(ledger), share]
        rows.append([*cells, *([strips.get(ledger.source, "")] if strips else []), ", ".join(_account(ledger))])
    paper.table(["source", "coverage", *(["the run"] if strips else []), "answered"], rows, right=[1])
    if len(ranked) > _SOURCES:
        paper.say((f"… and {len(ranked) - _SOURCES} more sources in the report", "dim"))
    if any("░" in one or "." in one for one in strips.values()):
        paper.say(("█ answered  ░ polls lost" if paper.blocks else "# answered  . polls lost", "dim"))


def print_load(paper: ConsoleWriter, page: Page) -> None:
    """What each generator did over the run, and whether it did its part."""
    if not page.load:
        return
    paper.title("Load, and the generator's health")
    lines = page.load_in(page.verdict.window)
    for line in lines[:_STREAMS]:
        told = [_figure(figure) for figure in line.figures if figure.readings]
        paper.say((line.name, "bold"), f"  {', '.join(told) or 'no reading'}", hang=4)
    if len(lines) > _STREAMS:
        paper.say((f"… and {len(lines) - _STREAMS} more streams in the report", "dim"))
    for finding in page.verdict.findings:
        if traits_of(finding.rule).generator and finding.outcome is not Outcome.NOT_APPLICABLE:
            paper.say(head(finding.outcome, finding.outcome.value), f"  {finding.target}: {finding.reason}", hang=4)


def print_compared(paper: ConsoleWriter, page: Page) -> None:
    """This run beside the earlier ones that were named, the figures of the load first."""
    rows = compared(page.verdict)
    beside = rows or figures_of(page)
    if not beside:
        return
    paper.title("Beside earlier runs")
    cells: list[list[Part]] = [
        [one.about, one.now, one.before, *([one.change, _said(one)] if rows else [])] for one in beside[:_FIGURES]
    ]
    heads = ["figure", "this run", "earlier", *(["change", "said"] if rows else [])]
    paper.table(heads, cells, right=[1, 2, 3] if rows else [1, 2])
    if len(beside) > _FIGURES:
        paper.say((f"… and {len(beside) - _FIGURES} more figures in the report", "dim"))


def _said(one: Beside) -> Part:
    if one.outcome is None:
        return ""
    return head(one.outcome, f"{one.outcome.value}{f' ({one.told})' if one.told else ''}")


def print_setup(paper: ConsoleWriter, page: Page) -> None:
    """What was tested on what, and what changed since the named earlier run."""
    machines = _machines(page)
    versions = _tree(page.source.meta("versions"))
    known = [f"{name} {versions[name]}" for name in ("soakwatch", "python") if name in versions]
    since = changed(page.source, page.earlier)
    if not machines and not known and since is None:
        return
    paper.title("Set-up")
    for name, words in machines[:_MACHINES]:
        paper.say((name, "bold"), f"  {words}", hang=4)
    if len(machines) > _MACHINES:
        paper.say((f"… and {len(machines) - _MACHINES} more machines in the report", "dim"))
    if known:
        paper.say(("monitor", "bold"), f"  {', '.join(known)}", hang=4)
    if since is not None:
        number = len(since.changes) + bool(since.plan)
        paper.say(("changed", "bold"), f"  {number or 'nothing'} since {since.run}", hang=4)
        for change in since.changes[:_CHANGES]:
            paper.say(f"{change.about}: {change.before or 'not there'} → {change.now or 'gone'}", indent=4, hang=6)
        if since.plan:
            paper.say("the plan", indent=4)
        if len(since.changes) > _CHANGES:
            paper.say((f"… and {len(since.changes) - _CHANGES} more", "dim"), indent=4)


def _figure(figure: Figure) -> str:
    reach = "" if figure.low == figure.high else f" ({extent(figure.low, figure.high, figure.unit)})"
    return f"{figure.word} {quantity(figure.mean, figure.unit)}{reach}"


def _account(ledger: Ledger) -> tuple[str, str]:
    """How many polls were answered, and how the others ended."""
    lost = ", ".join(f"{count} {how}" for how, count in sorted(ledger.lost.items()) if count)
    gap = ledger.longest_gap
    gap_text = "no answer ever" if gap is None else f"longest gap {show_seconds(gap.seconds)}"
    late = f"; {ledger.recovered} of them recovered late" if ledger.recovered else ""
    return f"{ledger.got} of {ledger.due} polls", gap_text + late + (f"; {lost}" if lost else "")


def _strips(paper: ConsoleWriter, page: Page, width: int) -> Mapping[str, str]:
    """A strip for each source, by its label."""
    sources, window = page.source.sources(), page.verdict.window
    made = {}
    for source in sources[:_SOURCES]:
        polls = within(page.source.poll_outcomes(source.id), window)
        lost, _ = losses_of(polls, _STRETCHES)
        gone = [(one.begin_ns, one.end_ns) for one in lost]
        made[source_label(source, sources)] = strip(gone, window, width, "█░" if paper.blocks else "#.")
    return made


def _machines(page: Page) -> list[tuple[str, str]]:
    """Each machine in a line: what its devices said of themselves, else what was found on it."""
    said: dict[str, dict[str, str]] = {}
    for event in page.events:
        if event.kind == "device.identity":
            said.setdefault(event.target, {}).update(event.detail)
    found = [
        (target, ", ".join(detail[key] for key in ("system", "model", "version", "name") if detail.get(key)))
        for target, detail in sorted(said.items())
    ]
    for target, tree in sorted(_tree(page.source.meta("fingerprint")).items()):
        if target not in said:
            found.append((target, ", ".join(_facts(tree))))
    return [(target, words) for target, words in found if words]


def _facts(tree: object) -> list[str]:
    host, cpu, memory = (_branch(tree, name) for name in ("host", "cpu", "memory"))
    told = [str(host[name]) for name in ("os", "kernel") if host.get(name)]
    if cpu.get("model"):
        told.append(f"{cpu['model']}, {cpu.get('logical_cores', '?')} cores")
    total = memory.get("total_bytes")
    told += [show_bytes(total)] if isinstance(total, int | float) else []
    return told


def _branch(tree: object, name: str) -> Mapping[str, object]:
    found = tree.get(name) if isinstance(tree, dict) else None
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _tree(text: str | None) -> Mapping[str, object]:
    try:
        read: object = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", read) if isinstance(read, dict) else {}
