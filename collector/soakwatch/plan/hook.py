"""A hook as a plan writes it: what sets it off, and what it then does (a command, a webhook, evidence of a device)."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema, model_validator

from soakwatch.core.registry import rules
from soakwatch.core.secrets import SecretRef, reference
from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds
from soakwatch.core.validation import Several, Short, Wrong, refused, shown
from soakwatch.plan.parts import (
    Duration,
    PlanModel,
    PlanReading,
    Text,
    Words,
    made_of,
    reading,
    unknown_target,
)
from soakwatch.sources.transport.ssh.ssh_access import Access

FINDINGS = ("fail", "warn", "any")
"""What a finding can set off; ``any`` is both."""
_GLOB = re.compile(r"[*?\[]")
_LIMIT = re.compile(r"(\d{1,6})\s*per\s*(\S.*)")
_REFERENCE = ("env:", "file:")


def _limit(value: object) -> object:
    """The pair of ``5 per 10m``: how many, in how many seconds."""
    match = _LIMIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected a number and a time, such as 5 per 10m; found {shown(value)}")
    count, length = int(match[1]), seconds(match[2])
    if not (1 <= count <= 1000 and 1 <= length <= 86400):
        raise ValueError(f"{value!r} is out of range: write 1 to 1000 times per 1s to 24h")
    return count, length


def _url(value: object) -> str:
    """An address, or the reference to a secret that holds it. A refusal does not repeat it: it may hold a token."""
    if isinstance(value, str) and value.startswith(_REFERENCE):
        return reference(value)
    if not isinstance(value, str) or not is_web_address(value):
        raise ValueError("this is not a web address: write https://HOST/PATH, or env:NAME where it contains a token")
    return value


def is_web_address(text: str) -> bool:
    """Whether a text is the address of a page, without a name or password in it."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # a port that cannot be raises
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None and text.isprintable()


def _failing() -> list[str]:
    return ["fail"]


_LIMIT_SCHEMA = {"type": "string", "pattern": r"^\d{1,6}\s*per\s*\S.*$", "examples": ["5 per 10m"]}
Limit = Annotated[tuple[int, float], BeforeValidator(_limit), WithJsonSchema(_LIMIT_SCHEMA)]
Url = Annotated[str, BeforeValidator(_url), WithJsonSchema({"type": "string", "pattern": "^(https?://|env:|file:)"})]


class WebhookPlan(PlanModel):
    """Where a finding is posted as JSON."""

    url: Annotated[Url, Field(description="address, or env:NAME or file:PATH where it holds a token", repr=False)]
    headers: Annotated[
        dict[str, SecretRef],
        Field(default_factory=dict, description="headers with secret values: {Authorization: env:X}"),
    ]
    ca: Annotated[Text | None, Field(description="CA bundle (PEM); default: the system's")] = None


class EvidenceAccess(Access):
    """A device whose evidence is taken: the keys of the source ``ssh`` that say how it is reached."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CapturePlan(PlanModel):
    """Evidence that is taken from a device, over SSH or on this machine."""

    ssh: Annotated[
        EvidenceAccess | None,
        Field(description="where it is taken; default: the target's own source ssh, or this machine if local"),
    ] = None
    commands: Annotated[
        list[Text],
        Field(default_factory=list, max_length=32, description="commands to run there; they should only read"),
    ]
    files: Annotated[
        list[Text],
        Field(default_factory=list, max_length=16, description="files or globs to fetch: /var/core/*"),
    ]
    timeout: Annotated[Duration, Field(description="each command is killed after this")] = 60.0

    @model_validator(mode="after")
    def _captures_evidence(self) -> CapturePlan:
        if not self.commands and not self.files:
            raise ValueError("captures nothing: add commands, files, or both")
        return self


Webhook = Annotated[WebhookPlan, Short("url")]


class HookPlan(PlanModel):
    """One hook: what sets it off, and what it does."""

    on: Annotated[
        Several[Literal["fail", "warn", "any", "end", "start"]],
        Field(default_factory=_failing, min_length=1, description="fail, warn, any (of both), start or end of the run"),
    ]
    rule: Annotated[Text, Field(description="findings of this rule only (a name or glob)")] = "*"
    target: Annotated[Text | None, Field(description="findings of this target only; default: all")] = None
    run: Annotated[Words | None, Field(description="command to run; SOAKWATCH_… variables describe the finding")] = None
    timeout: Annotated[Duration, Field(description="the command is killed after this")] = 60.0
    webhook: Annotated[Webhook | None, Field(description="where the finding is posted as JSON")] = None
    capture: Annotated[CapturePlan | None, Field(description="evidence that is kept in the record")] = None
    limit: Annotated[
        Limit, Field(description="at most this often; further findings are counted and reported together")
    ] = (5, 600.0)

    @model_validator(mode="after")
    def _has_action(self) -> HookPlan:
        if self.run is None and self.webhook is None and self.capture is None:
            raise ValueError("does nothing: add run, webhook or capture")
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        """What it does, in a few words; no address of a webhook is among them."""
        capture = 0 if self.capture is None else len(self.capture.commands) + len(self.capture.files)
        actions = (
            f"capture ({capture})" if capture else "",
            f"run {shlex.join(self.run)}" if self.run is not None else "",
            "webhook" if self.webhook is not None else "",
        )
        return tuple(action for action in actions if action)

    def about(self, outcome: str) -> bool:
        """Whether findings of this outcome set it off."""
        return outcome in self.on or (outcome in FINDINGS and "any" in self.on)


def _fitting(hooks: tuple[HookPlan, ...], info: ValidationInfo) -> tuple[HookPlan, ...]:
    """The hooks, checked against the rules that are installed and the targets of the plan."""
    known = rules(reading(info).registry)
    wrong: list[Wrong] = []
    for index, hook in enumerate(hooks):
        if not any(fnmatchcase(rule, hook.rule) for rule in known):
            message = "no rule matches" if _GLOB.search(hook.rule) else "unknown rule"
            wrong.append(Wrong((index, "rule"), f"{message} {hook.rule!r}{hint(hook.rule, known)}"))
        wrong += unknown_target(hook.target, reading(info).targets, index)
    if wrong:
        raise refused(*wrong)
    return hooks


Hooks = Annotated[tuple[HookPlan, ...], Field(max_length=32), AfterValidator(_fitting)]


def _stopping(given: list[Text] | bool, context: PlanReading) -> frozenset[str]:  # noqa: FBT001
    """The rules of ``stop_on_fail``."""
    known = rules(context.registry)
    if isinstance(given, bool):
        return frozenset(known if given else ())
    wrong = [
        Wrong((n,), f"unknown rule {name!r}{hint(name, known)}") for n, name in enumerate(given) if name not in known
    ]
    if wrong:
        raise refused(*wrong)
    return frozenset(given)


StopOnFail = Annotated[frozenset[str], made_of(_stopping)]
