"""A run that is reached over HTTP: the other end of the event API, for scripts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote, urlsplit

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.secrets import Secret, secret
from soakwatch.record import StoredEvent, finding_from_json
from soakwatch.runs.attached import InterimVerdict, wait_until_recorded
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError, EventRequest, moment
from soakwatch.sources.transport.http_client import (
    LOOPBACK,
    REQUEST_ERRORS,
    Cause,
    failure_of,
    sync_client,
    tls_context,
)
from soakwatch.web.wire import body_of
from soakwatch_rules.rule import Event, Outcome

TOKEN_VARIABLE = "SOAKWATCH_TOKEN"  # noqa: S105 - a name
_WAIT_S = 15.0
_LARGEST = 32 * 2**20
_PATH = re.compile(r"(?:/api(?:/runs(?:/([^/]+)(?:/events)?)?)?)?/*")
_REMEDIES = {
    Cause.TIMEOUT: "is the run still running?",
    Cause.REFUSED: "is the run still running, and is this its address?",
    Cause.CERTIFICATE: "name its CA bundle",
}


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """One run of one server."""

    base: str  # http://HOST:PORT
    name: str
    token: Secret = field(repr=False)
    ca: str | None = None

    def tell(self, ask: EventRequest) -> StoredEvent:
        """Keep an event there. Raises EventRefusedError as the server says it, SoakwatchError if it does not answer."""
        return _event(self.ask("POST", "events", body_of(ask)))

    def said(self, until_ns: int | None) -> InterimVerdict:
        """What the server's run has said of itself last: its final verdict, or its live judging of each minute.

        While it goes on, rules that judge only at the end have said nothing.
        """
        found: dict[str, object] = {}

        def look() -> int | None:
            found.update(self.ask("GET", "findings"))
            last = found.get("until")
            return until_ns if found.get("state") != "running" else None if last is None else moment(str(last))

        if until_ns is None:
            look()
        else:
            wait_until_recorded(look, until_ns)
        return _said(found)

    def ask(self, method: str, what: str, body: bytes | None = None) -> dict[str, object]:
        """What the server answers below this run. Raises SoakwatchError, EventRefusedError, EventConflictError."""
        url = f"{self.base}/api/runs/{quote(self.name, safe='')}/{what}"
        return _answer(method, url, self.token, self.ca, body)


def remote_run(url: str, token: str | None, ca: str | None) -> RemoteRun:
    """The run that a URL means, if its server knows it and the token. Raises PlanError and SoakwatchError."""
    parts = urlsplit(url)
    try:
        found = _PATH.fullmatch(parts.path)
        good = bool(parts.hostname) and found is not None and not parts.query and parts.username is None
        parts.port  # noqa: B018 - a port that cannot be raises
    except ValueError:
        good = False
    if not good or found is None:
        raise PlanError("this is no address of a run: write http://HOST:PORT, or http://HOST:PORT/api/runs/NAME")
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise PlanError(f"the token would cross the network in the clear: use https, or run beside {parts.hostname}")
    if token is None and TOKEN_VARIABLE not in os.environ:
        raise PlanError(f"{parts.netloc} wants a token: export {TOKEN_VARIABLE}, or name env:NAME or file:PATH")
    try:
        shown = secret(token or f"env:{TOKEN_VARIABLE}")
    except ValueError:
        raise PlanError("a token is never given in the clear: write env:NAME or file:PATH") from None
    made = RemoteRun(f"{parts.scheme}://{parts.netloc}", found[1] or "last", shown, ca)
    told = _answer("GET", f"{made.base}/api/runs/{quote(made.name, safe='')}/events", shown, ca, None)
    return RemoteRun(made.base, str(told.get("run", made.name)), shown, ca)


def _answer(method: str, url: str, token: Secret, ca: str | None, body: bytes | None) -> dict[str, object]:
    place = urlsplit(url).netloc
    headers = {"authorization": f"Bearer {token.reveal()}", "content-type": "application/json"}
    client = sync_client(headers, _WAIT_S, owner=f"the token of {token.reference}", context=tls_context(url, ca))
    try:
        with client, client.stream(method, url, content=body) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if size > _LARGEST:
                    raise SoakwatchError(f"{place} answers with more than {_LARGEST >> 20} MiB: not read")
                parts.append(part)
            status = response.status_code
    except REQUEST_ERRORS as error:
        raise SoakwatchError(failure_of(error, place, _WAIT_S, _REMEDIES).text) from None
    return _understood(place, status, b"".join(parts))


def _understood(place: str, status: int, body: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SoakwatchError(f"{place} answers with {status} and no JSON: it is no server of Soakwatch")
    if status < 300:
        return cast("dict[str, object]", found)
    sentence = str(found.get("error", f"the answer is {status}"))[:500]
    if status == 409:
        raise EventConflictError(sentence)
    if status == 400:
        raise EventRefusedError(sentence)
    if status == 401:
        raise SoakwatchError(f"{place} does not know this token: take the one that it shows, or wrote into web.token")
    raise SoakwatchError(f"{place}: {sentence}")


def _event(data: Mapping[str, object]) -> StoredEvent:
    def time_of(key: str) -> int | None:
        value = data.get(key)
        return None if value is None else moment(str(value))

    try:
        begin_ns = time_of("begin")
        assert begin_ns is not None
        labels, expect = cast("Mapping[str, object]", data["labels"]), cast("Mapping[str, int]", data["expect"])
        event = Event(
            str(data["kind"]),
            str(data["target"]),
            str(data["object"]),
            begin_ns,
            time_of("end"),
            {key: str(value) for key, value in labels.items()},
            {key: int(value) for key, value in expect.items()},
            time_of("deadline"),
        )
        return StoredEvent(int(str(data["id"])), str(data["origin"]), event)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
        raise SoakwatchError("the event was told, but the answer is not understood: another version?") from None


def _said(found: Mapping[str, object]) -> InterimVerdict:
    try:
        listed = cast("list[object]", found["findings"])
        findings = tuple(finding_from_json(json.dumps(one)) for one in listed)
        until = found.get("until")
        until_ns = None if until is None else moment(str(until))
        verdict = found.get("verdict")
        if verdict is not None:
            return InterimVerdict(Outcome(str(verdict)), str(found.get("reason")), findings, until_ns)
    except (KeyError, TypeError, ValueError, LookupError):
        raise SoakwatchError("what is said of the run is not understood: another version?") from None
    failed = [one for one in findings if one.outcome is Outcome.FAIL]
    if failed:
        return InterimVerdict(Outcome.FAIL, f"{failed[0].rule}: {failed[0].reason}", findings, until_ns)
    return InterimVerdict(Outcome.INCONCLUSIVE, "the run goes on, and nothing has failed so far", findings, until_ns)
