"""Who is notified of a run, and of what: ``notify: [{to: env:SOAK_NOTIFY_URL, on: [start, end]}]``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from soakwatch.core.secrets import SecretRef
from soakwatch.core.validation import Several, Short
from soakwatch.plan.parts import PlanModel

START, FAILURE, END = "start", "failure", "end"


def _usual() -> list[str]:
    return [FAILURE, END]


class NotifyPlan(PlanModel):
    """One recipient: the service that is reached by an Apprise URL (mailto, slack, workflows, tgram, json …)."""

    to: Annotated[
        SecretRef,
        Field(description="secret that holds the Apprise URL, such as mailtos://… or slack://…", examples=["env:URL"]),
    ]
    on: Annotated[
        Several[Literal["start", "failure", "end"]],
        Field(
            default_factory=_usual, min_length=1, description="start of the run, first failure, end with the verdict"
        ),
    ]
    attach: Annotated[
        Literal["report", "summary", "none"],
        Field(
            description="goes with the end: the HTML report where the service takes files, Markdown text, or nothing"
        ),
    ] = "report"


Notify = Annotated[NotifyPlan, Short("to")]
