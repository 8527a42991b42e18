"""What triggers a hook, and how it is passed on: as environment variables to a command, as JSON to a webhook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from soakwatch.engine.scripts import stamp
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.tree import Tree

if TYPE_CHECKING:
    from soakwatch.judge.verdict import Verdict

HELD_BACK = "held-back"
_MAX_VALUE_LENGTH = 2000  # characters of an environment variable


class HookFailedError(Exception):
    """A hook failed; the message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a hook is triggered: ``on`` is fail, warn, start, end, or held-back (over the storm limit).

    ``held`` counts the findings held back by rule. ``serial`` numbers the triggers of a run. ``once`` identifies an
    action to do once in a run even if its monitor is killed; "" if it need not be tracked.
    """

    on: str
    run: str
    time_ns: int
    finding: Finding | None = None
    verdict: Verdict | None = None
    held: Mapping[str, int] = field(default_factory=dict)
    serial: int = 0
    once: str = ""

    @property
    def stamp(self) -> str:
        """Time and serial as part of file names: unique in a run."""
        return f"{stamp(self.time_ns)}-{self.serial:03d}"

    @property
    def about(self) -> str:
        """It in a few words."""
        if self.finding is None:
            return f"{self.on} of the run" if self.on in {"start", "end"} else self.on
        parts = self.finding.outcome.value, self.finding.rule, self.finding.target, self.finding.object
        return " ".join(part for part in parts if part)

    @property
    def target(self) -> str:
        """Its target; "" for all."""
        return "" if self.finding is None else self.finding.target

    def environment(self) -> dict[str, str]:
        """The variables that describe it to a command; nothing is ever put into the command's words."""
        variables = {"SOAKWATCH_ON": self.on, "SOAKWATCH_NAME": self.run}
        if self.finding is not None:
            variables |= {
                "SOAKWATCH_RULE": self.finding.rule,
                "SOAKWATCH_TARGET": self.finding.target,
                "SOAKWATCH_METRIC": self.finding.metric,
                "SOAKWATCH_OBJECT": self.finding.object,
                "SOAKWATCH_OUTCOME": self.finding.outcome.value,
                "SOAKWATCH_REASON": self.finding.sentence,
            }
        if self.verdict is not None:
            variables |= {"SOAKWATCH_OUTCOME": self.verdict.outcome.value, "SOAKWATCH_REASON": self.verdict.reason}
        if self.held:
            variables |= {"SOAKWATCH_HELD_BACK": str(sum(self.held.values())), "SOAKWATCH_REASON": _held(self.held)}
        return {name: _variable(text) for name, text in variables.items()}

    def document(self) -> dict[str, Tree]:
        """The JSON to post: ``event``, ``run`` and the finding's keys as in verdict.json."""
        document: dict[str, Tree] = {"event": "finding" if self.finding is not None else self.on, "run": self.run}
        if self.finding is not None:
            from soakwatch.report.json import finding_document  # imports the reports, which a check does not need

            document |= finding_document(self.finding)
        if self.verdict is not None:
            counts = {outcome.value: sum(f.outcome is outcome for f in self.verdict.findings) for outcome in Outcome}
            document |= {
                "verdict": self.verdict.outcome.value,
                "reason": self.verdict.reason,
                "findings": dict[str, Tree](counts),
            }
        if self.held:
            document |= {
                "count": sum(self.held.values()),
                "rules": dict[str, Tree](self.held),
                "reason": _held(self.held),
            }
        return document


def _held(held: Mapping[str, int]) -> str:
    rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(held.items()))
    return f"{sum(held.values())} findings over the limit, not reported one by one: {rules}"


def _variable(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "backslashreplace").decode()[:_MAX_VALUE_LENGTH]
