"""The texts of notifications: plain, short, the verdict or failure in the first line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.core.formatting import printable, quantity, share_text, utc
from soakwatch.core.units import show_seconds
from soakwatch.engine.notify.message import Kind, Message, Tone
from soakwatch.engine.notify.policy import News, began_ns, finding_name
from soakwatch.plan import Plan
from soakwatch.record.findings import identity_of
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import counted, cut_to, first_few

if TYPE_CHECKING:
    from soakwatch.judge.verdict import Verdict

_LISTED, _CAUSES, _TARGETS, _DOUBTS = 10, 3, 8, 3
_MAX_LINE, _MAX_TITLE = 400, 150
_TONES: dict[Outcome, Tone] = {Outcome.PASS: "success", Outcome.FAIL: "failure"}
LIVE = "The run goes on: this finding is provisional, and only the final verdict counts."


@dataclass(frozen=True, slots=True)
class Where:
    """Where to find a run: machine, folder, and the address of its page ("" if none)."""

    host: str
    folder: Path
    page: str = ""

    def lines(self) -> list[str]:
        """The last lines of a message."""
        page = [f"Page: {self.page} (seen from {self.host})"] if self.page else []
        return [*page, f"Record: {self.host}:{self.folder}"]


def safe(text: str, most: int = _MAX_LINE) -> str:
    r"""One safe line of text from devices and plans: no mentions, no links, no direction marks.

    >>> safe("cpu of @everyone at http://x")
    'cpu of @\u200beveryone at http:\u200b//x'
    """
    line = cut_to(" ".join(printable(text).split()), most)
    return line.replace("@", "@\u200b").replace("://", ":\u200b//")


def start_message(plan: Plan, start_ns: int, end_ns: int, where: Where) -> Message:
    """The message that the run has begun."""
    phases = ", ".join(f"{phase.name} {show_seconds(phase.seconds)}" for phase in plan.phases)
    targets = [f"{target.name} ({target.role})" for target in plan.targets]
    length = show_seconds((end_ns - start_ns) * 1e-9)
    body = [
        f"{safe(plan.name)} runs from {utc(start_ns)} to {utc(end_ns)} UTC: {length} ({safe(phases)}).",
        f"Targets: {safe(first_few(targets, _TARGETS))}.",
        *where.lines(),
    ]
    return _message("start", f"Started {plan.name}: {length} on {first_few([t.name for t in plan.targets], 3)}", body)


def failure_message(run: str, news: News, start_ns: int, where: Where, *, final: bool) -> Message:
    """The message on the first failure, and on others by then."""
    first, *others = news.findings
    at_ns = max(began_ns(first), start_ns)
    after = show_seconds((at_ns - start_ns) // 10**9)
    body = [
        f"{safe(finding_name(first))}: {safe(first.sentence)}",
        f"At {utc(at_ns)} UTC, {after} after the start.",
        "The run is over, and this is its judgment." if final else LIVE,
        f"Definition: {safe(first.definition)}",
        *_figures(first),
    ]
    if others:
        body.append(f"{counted(len(others), 'other finding')} fail{_s(len(others))} too:")
        body += _listed([finding_name(finding) for finding in others])
    head = "FAIL" if final else "Failing"
    message = _message("failure", f"{head} {run}: {first.target} {first.rule}", [*body, *where.lines()], "failure")
    return replace(message, finding=identity_of(first), about=finding_name(first))


def withdrawn_message(run: str, news: News, where: Where) -> Message:
    """The message that the first failure did not last."""
    about = safe(news.gone[0])
    left = f"{counted(news.standing, 'other finding')} still fail{_s(news.standing)}."
    body = [
        f"{about} does not fail any more: a later judging did not find it again, and the failure is withdrawn.",
        left if news.standing else "Nothing fails at the moment.",
        LIVE,
        *where.lines(),
    ]
    message = _message("withdrawn", f"Withdrawn {run}: {news.gone[0]}", body)
    return replace(message, about=news.gone[0])


def more_message(run: str, news: News, where: Where, *, final: bool) -> Message:
    """The message on what changed since the last one."""
    body = []
    if news.findings:
        body.append(f"{counted(len(news.findings), 'finding')} that did not fail before:")
        body += _listed([f"{finding_name(finding)}: {finding.sentence}" for finding in news.findings])
    if news.gone:
        body.append(f"{counted(len(news.gone), 'finding')} withdrawn:")
        body += _listed(news.gone)
    body.append("The run is over, and this is its judgment." if final else LIVE)
    if news.last:
        body.append("This is the last message about failures before the end of the run.")
    title = f"{run}: {counted(news.standing, 'finding')} fail{_s(news.standing)}"
    return _message("more", title if final else f"{title} so far", [*body, *where.lines()], "warning")


def end_message(verdict: Verdict, where: Where, attach: str, report: Path, summary: str) -> Message:
    """The message with the verdict; ``attach`` is as in the plan, ``summary`` Markdown."""
    word = verdict.outcome.value.upper()
    window = verdict.window
    body = [
        f"{word}: {safe(verdict.reason)}",
        f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}",
    ]
    if verdict.outcome is Outcome.FAIL and (problems := verdict.problems):
        from soakwatch.judge.problems import problem_words  # imports the rules, which a check need not have

        body.append(f"First failure: {safe(problem_words(problems[0], window, verdict.phases))}.")
    causes = [f"{cause.outcome.value}: {cause.target} {cause.headline}" for cause in verdict.causes]
    body += _listed(causes, _CAUSES)
    message = _message(
        "end",
        f"{word} {verdict.run}: {verdict.reason}",
        [*body, *where.lines()],
        _TONES.get(verdict.outcome, "warning"),
    )
    return replace(message, summary="" if attach == "none" else summary, report=report if attach == "report" else None)


def broken_message(run: str, why: str, where: Where) -> Message:
    """The message that the monitor itself broke: there is no verdict."""
    body = [f"The monitor broke, and there is no verdict: {safe(why)}", *where.lines()]
    return _message("end", f"BROKEN {run}: the monitor itself broke", body, "failure")


def sample_message(run: str, report: Path | None) -> Message:
    """The message of the test command."""
    body = ["This is a test of the notifications of Soakwatch. Nothing has happened."]
    return replace(_message("test", f"Test {run}".strip(), body), report=report)


def _figures(finding: Finding) -> list[str]:
    """A finding's figures, and how certain they are."""
    figures = []
    if finding.measured is not None:
        limit = "" if finding.limit is None else f", limit {quantity(finding.limit, finding.unit)}"
        figures.append(f"Measured {quantity(finding.measured, finding.unit)}{limit}")
    if finding.interval is not None:
        low, high = (quantity(bound, finding.unit) for bound in finding.interval)
        figures.append(f"interval {low} to {high}")
    of = "" if finding.expected is None else f" of {finding.expected}, {share_text(finding.coverage)}"
    figures.append(f"{counted(finding.samples, 'sample')}{of}")
    lines = [f"{'; '.join(figures)}."]
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        lines.append(f"Forecast: {safe(words)}.")
    lines += [f"Note: {safe(reason)}" for reason in finding.doubts[:_DOUBTS]]
    return lines


def _s(number: int) -> str:
    """The -s of a verb after a number of one."""
    return "s" if number == 1 else ""


def _listed(texts: Sequence[str], most: int = _LISTED) -> list[str]:
    lines = [f"- {safe(text)}" for text in texts[:most]]
    return [*lines, f"- and {len(texts) - most} more"] if len(texts) > most else lines


def _message(kind: Kind, title: str, body: Sequence[str], tone: Tone = "info") -> Message:
    return Message(kind, safe(title, _MAX_TITLE), "\n".join(body), tone)
