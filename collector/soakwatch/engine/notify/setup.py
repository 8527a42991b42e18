"""Builds the notifications of a plan, and checks before the run that each can work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.engine.notify.notifying import Notifying
from soakwatch.engine.notify.policy import FAILED, SENT
from soakwatch.engine.notify.sending import Sender
from soakwatch.engine.promises import Promises
from soakwatch.plan import Plan
from soakwatch.plan.notify_plan import NotifyPlan
from soakwatch.record import RecordView
from soakwatch_model.event import Event


def notifying_of(
    plan: Plan,
    folder: Path,
    start_ns: int,
    now_ns: Callable[[], int],
    *,
    resumed: bool,
    promises: Promises | None = None,
) -> Notifying:
    """The notifications of a plan; a resumed run does not repeat messages that its record says were sent."""
    recorded = _recorded(folder) if resumed and plan.notify else ()
    return Notifying(plan, folder, start_ns, now_ns, lambda: page_of(folder), recorded, promises)


def page_of(folder: Path) -> str:
    """The address of a run's page, its own or that among all runs, without token; "" if none."""
    from soakwatch.runs.catalog import ADDRESS_FILE

    for location in (folder, folder.parent):
        with suppress(OSError, ValueError):
            url = (location / ADDRESS_FILE).read_text(encoding="ascii").strip()
            return f"{url}/runs/{quote(folder.absolute().name)}/"
    return ""


def check_notifications(plan: Plan) -> tuple[str, ...]:
    """A line for each notification of a plan: its service and its occasions. Sends nothing.

    Raises PlanError with every one that cannot work: no secret, no address, a service unknown to Apprise.
    """
    if not plan.notify:
        return ()
    with ThreadPoolExecutor(4) as crew:
        answers = list(crew.map(lambda planned: Sender(planned.to).check(), plan.notify))
    problems = [
        f"notify, number {number}: {answer.trouble}" for number, answer in enumerate(answers, 1) if answer.trouble
    ]
    if problems:
        raise PlanError(*(f"{plan.origin}: {problem}" if plan.origin else problem for problem in problems))
    return tuple(
        f"notify: {planned.to} by {answer.service} on {_listed(planned.on)}{_attached(planned, files=answer.files)}"
        for planned, answer in zip(plan.notify, answers, strict=True)
    )


def _attached(planned: NotifyPlan, *, files: bool) -> str:
    if "end" not in planned.on or planned.attach == "none":
        return ""
    if planned.attach == "report" and files:
        return ", report attached"
    return ", with a summary" + (": it takes no files" if planned.attach == "report" else "")


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _recorded(folder: Path) -> tuple[Event, ...]:
    try:
        with RecordView.open(folder) as view:
            return tuple(stored.event for stored in view.events() if stored.event.kind in {SENT, FAILED})
    except RecordError:
        return ()
