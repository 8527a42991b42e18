"""The terms of the report."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.report.blocks import Block, Facts
from soakwatch.report.page import Page

ORDER = 90
TITLE = "Glossary"

_WORDS = (
    ("fail", "A rule's limit was broken; one failing finding fails the run."),
    (
        "inconclusive",
        (
            "There was too little data to decide. It is not a pass: a required rule that is inconclusive keeps the "
            "run from passing."
        ),
    ),
    ("warn", "Within the limits, but worth checking."),
    ("pass", "Judged, with enough data: no failure and no warning."),
    ("not applicable", "The rule has nothing to judge here; the reason says why."),
    ("finding", "The result of one rule for one series, object or target in one window of time."),
    (
        "cause",
        (
            "Related findings are grouped by probable cause: those at the same moments, after a recorded event, "
            "during a change of load, of one growing resource, or undecided for one reason. Each keeps its own "
            "outcome and evidence."
        ),
    ),
    (
        "confidence (of a cause)",
        (
            "1 less the probability that findings of so many rules would all lie at these moments by chance, if each "
            "fell anywhere in the run."
        ),
    ),
    (
        "forecast",
        (
            "When a limit is reached at the present rate, with its interval and the probability of that interval in "
            "brackets."
        ),
    ),
    (
        "headroom",
        (
            "The share of a limit that was left at the highest measured value. The limit is a rule's, or the capacity "
            "that the device reports."
        ),
    ),
    ("acknowledged", "A person has seen this finding and given a reason. The outcome does not change."),
    ("withdrawn", "A warning that was reported while the run went on and not confirmed later."),
    ("measured, limit", "The number that the rule compares, and what it compares it with, as in its definition."),
    ("interval", "Where the measured value lies with 95 % confidence, unless the definition says otherwise."),
    (
        "smallest detectable",
        (
            "The smallest effect that this window would have shown with 80 % probability. A pass says nothing about "
            "smaller ones."
        ),
    ),
    ("coverage", "The share of the due polls (or samples) that were answered. Missing data is never taken for zero."),
    ("gap", "A time without an answer from a source."),
    ("load", "What the traffic generators reported in the same window."),
    ("phase", "A named part of the run: baseline, ramp, soak, stress, spike, recovery, cooldown."),
    (
        "capture",
        (
            "Samples of a device's flight recorder, mostly ten a second, from 30 s before an event or finding until "
            "30 s after it. They are finer than the samples that are judged, and are not judged themselves."
        ),
    ),
    ("event", "Something that happened or was done to a target, with its start and mostly its end."),
)


def blocks(page: Page) -> Sequence[Block]:  # noqa: ARG001 - every section is asked in the same way
    """The same for every report."""
    return (Facts(_WORDS, words=True),)
