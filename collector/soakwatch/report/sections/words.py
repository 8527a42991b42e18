# ruff: noqa: E501 - lines of HTML are as long as they are
"""The words of the report, so that nobody has to guess."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page

ORDER = 90
TITLE = "Words"
TEMPLATE = """\
<dl class="words">
{% for word, meaning in words %}<dt>{{ word }}</dt><dd>{{ meaning }}</dd>
{% endfor %}</dl>
"""

_WORDS = (
    ("fail", "A rule's limit was broken; one failing finding fails the run."),
    (
        "inconclusive",
        "There was too little data to say. It is not a pass: a required rule that is inconclusive keeps the run from passing.",
    ),
    ("warn", "Worth a look, but within the limits."),
    ("pass", "Judged, with enough data: no failure and no warning."),
    ("not applicable", "The rule has nothing to look at here; the reason says why."),
    ("finding", "What one rule says of one series, object or target in one window of time."),
    (
        "cause",
        "Findings that have one cause are told together: those at the same moments, after an event that was told, while the load was changed, of one growing thing, or in doubt for one reason. Each keeps its own outcome and evidence.",
    ),
    (
        "together by more than chance",
        "1 less the probability that findings of so many rules would all lie at these moments by chance, if each fell anywhere in the run.",
    ),
    (
        "if it goes on",
        "When a limit is reached at the present pace, and the interval that holds the truth with the probability in brackets.",
    ),
    (
        "headroom",
        "The share of a limit that was left where the readings came nearest to it. A limit is a rule's, or what the device states as the most there is.",
    ),
    ("acknowledged", "Somebody has seen this finding and said why it stands. It changes no outcome."),
    ("withdrawn", "A warning of a look at the run while it went on, that a later look did not find again."),
    ("measured, limit", "The number that the rule compares, and what it compares it with, as in its definition."),
    ("interval", "Where the measured value lies with 95 % confidence, unless the definition says otherwise."),
    (
        "smallest detectable",
        "The smallest effect that this window could have shown with 80 % power. A pass says nothing of smaller ones.",
    ),
    (
        "coverage",
        "The share of the polls (or readings) that were due and brought an answer. What is missing is never taken for zero.",
    ),
    ("hole", "The longest stretch without an answer from a source."),
    ("load", "What the traffic generators reported in the same window."),
    ("phase", "A named stretch of the run: baseline, ramp, soak, stress, spike, recovery, cooldown."),
    (
        "closer look",
        "Samples of a device's flight recorder, mostly ten a second, from half a minute before something happened until half a minute after it. They are finer than the readings that are judged, and are not judged themselves.",
    ),
    ("event", "Something that happened or was done to a target, with its begin and mostly its end."),
)


def facts(page: Page) -> Mapping[str, object]:  # noqa: ARG001 - every section is asked in the same way
    """The same for every report."""
    return {"words": _WORDS}
