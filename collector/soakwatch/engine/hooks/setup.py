"""Builds the hooks of a plan, and checks before the run that their programs and secrets exist."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from pathlib import Path

from soakwatch.core.errors import PlanError
from soakwatch.core.redaction import redaction_of
from soakwatch.core.run_command import RunsCommand, run_command
from soakwatch.core.secrets import secret
from soakwatch.engine.hooks.hooks import Hooks, TakesEvidence
from soakwatch.engine.hooks.trigger import HookFailedError, Trigger
from soakwatch.engine.promises import Promises
from soakwatch.plan import Plan
from soakwatch.plan.hook import CapturePlan, WebhookPlan
from soakwatch.record.queue import Notes


def base_environment(plan: Plan, folder: Path) -> dict[str, str]:
    """Environment variables of every script and hook: SOAKWATCH_NAME, the plan's, and SOAKWATCH_RUN, the run's folder,
    by which commands, tests and libraries find the run."""
    return {"SOAKWATCH_NAME": plan.name, "SOAKWATCH_RUN": str(folder.absolute())}


def hooks_of(
    plan: Plan,
    folder: Path,
    notes: Notes,
    now_ns: Callable[[], int],
    known: Collection[str] = (),
    promises: Promises | None = None,
    command: RunsCommand = run_command,
) -> Hooks:
    """The hooks of a plan. For a resumed run, ``known`` are the identities of findings that triggered hooks,
    ``promises`` the actions done."""
    redaction = redaction_of(plan.text)
    capturing: TakesEvidence = _NoCapture()
    if any(hook.capture is not None for hook in plan.hooks):
        from soakwatch.engine.hooks.capturing import Capturing  # imports SSH, which few runs need

        capturing = Capturing(plan, folder, notes, redaction)
    if any(hook.webhook is not None for hook in plan.hooks):
        for name in ("soakwatch.engine.hooks.webhook", "soakwatch.report.json"):
            import_module(name)  # now: when a hook needs them Soakwatch may have been replaced on the disk
    around = base_environment(plan, folder)
    return Hooks(plan.hooks, plan.name, around, notes, capturing, redaction, now_ns, known, promises, command)


def check_outside(plan: Plan) -> None:
    """Raises PlanError with every missing program of scripts, hooks and labels, and every missing webhook secret, so
    that it is reported now and not in the night.
    """
    problems = []
    for number, event in enumerate(plan.events, 1):
        if event.run:
            problems += [f"events, number {number} ({event.kind}): {wrong}" for wrong in _missing(event.run)]
    for label in plan.labels:
        if label.source is not None and label.source.command is not None:
            problems += [f"labels, {label.name}: {wrong}" for wrong in _missing(label.source.command, "command")]
    for number, hook in enumerate(plan.hooks, 1):
        problems_of_hook = [] if hook.run is None else list(_missing(hook.run))
        if hook.webhook is not None:
            problems_of_hook += _unusable(hook.webhook)
        problems += [f"hooks, number {number}: {wrong}" for wrong in problems_of_hook]
    if problems:
        raise PlanError(*(f"{plan.origin}: {problem}" if plan.origin else problem for problem in problems))


def _missing(words: tuple[str, ...], key: str = "run") -> Iterator[str]:
    if shutil.which(words[0]) is None:
        yield f"{key}: program {words[0]!r} not found: install it, or write its full path"


def _unusable(planned: WebhookPlan) -> Iterator[str]:
    from soakwatch.engine.hooks.webhook import address_of
    from soakwatch.sources.transport.tls import verifying

    try:
        address_of(planned)
        for reference in planned.headers.values():
            secret(reference)
        if planned.ca is not None:
            verifying(planned.ca)
    except PlanError as error:
        yield f"webhook: {error}"


class _NoCapture:
    async def take(self, planned: CapturePlan, trigger: Trigger) -> list[str]:
        """Raises: the plan captures nothing."""
        raise HookFailedError(f"{trigger.about}: nothing is captured in this run ({len(planned.commands)} commands)")
