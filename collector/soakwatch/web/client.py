"""HTTP client of the event API, for scripts."""

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
from soakwatch.web.json_events import request_to_json
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome

TOKEN_VARIABLE = "SOAKWATCH_TOKEN"  # noqa: S105 - a name
_WAIT_S = 15.0
_MAX_ANSWER_BYTES = 32 * 2**20
_PATH = re.compile(r"(?:/api(?:/runs(?:/([^/]+)(?:/events)?)?)?)?/*")
_REMEDIES = {
    Cause.TIMEOUT: "check that the run is still running",
    Cause.REFUSED: "check that the run is still running, and its address",
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
        """Record an event on the server. Raises EventRefusedError with the server's message, SoakwatchError if it does
        not answer."""
        return _event(self.ask("POST", "events", request_to_json(ask)))

    def verdict_so_far(self, until_ns: int | None) -> InterimVerdict:
        """The run's final verdict, or the interim verdict of its last live evaluation.

        An interim verdict contains nothing from rules that judge only at the end.
        """
        answer: dict[str, object] = {}

        def recorded_until() -> int | None:
            answer.update(self.ask("GET", "findings"))
            last = answer.get("until")
            return until_ns if answer.get("state") != "running" else None if last is None else moment(str(last))

        if until_ns is None:
            recorded_until()
        else:
            wait_until_recorded(recorded_until, until_ns)
        return _interim_verdict(answer)

    def ask(self, method: str, what: str, body: bytes | None = None) -> dict[str, object]:
        """The server's answer for this run. Raises SoakwatchError, EventRefusedError, EventConflictError."""
        url = f"{self.base}/api/runs/{quote(self.name, safe='')}/{what}"
        return _answer(method, url, self.token, self.ca, body)


def remote_run(url: str, token: str | None, ca: str | None) -> RemoteRun:
    """The run at a URL, if its server knows the run and accepts the token. Raises PlanError and SoakwatchError."""
    parts = urlsplit(url)
    try:
        path = _PATH.fullmatch(parts.path)
        good = bool(parts.hostname) and path is not None and not parts.query and parts.username is None
        parts.port  # noqa: B018 - a port that cannot be raises
    except ValueError:
        good = False
    if not good or path is None:
        raise PlanError("invalid address of a run: write http://HOST:PORT or http://HOST:PORT/api/runs/NAME")
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise PlanError(
            f"the token would cross the network in clear text: use https, or run this command on {parts.hostname}"
        )
    if token is None and TOKEN_VARIABLE not in os.environ:
        raise PlanError(f"{parts.netloc} requires a token: export {TOKEN_VARIABLE}, or give env:NAME or file:PATH")
    try:
        shown = secret(token or f"env:{TOKEN_VARIABLE}")
    except ValueError:
        raise PlanError("a token must not be given in clear text: write env:NAME or file:PATH") from None
    run = RemoteRun(f"{parts.scheme}://{parts.netloc}", path[1] or "last", shown, ca)
    answer = _answer("GET", f"{run.base}/api/runs/{quote(run.name, safe='')}/events", shown, ca, None)
    return RemoteRun(run.base, str(answer.get("run", run.name)), shown, ca)


def _answer(method: str, url: str, token: Secret, ca: str | None, body: bytes | None) -> dict[str, object]:
    server = urlsplit(url).netloc
    headers = {"authorization": f"Bearer {token.reveal()}", "content-type": "application/json"}
    client = sync_client(headers, _WAIT_S, owner=f"the token of {token.reference}", context=tls_context(url, ca))
    try:
        with client, client.stream(method, url, content=body) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if size > _MAX_ANSWER_BYTES:
                    raise SoakwatchError(
                        f"{server} answers with more than {_MAX_ANSWER_BYTES >> 20} MiB, which is too much"
                    )
                parts.append(part)
            status = response.status_code
    except REQUEST_ERRORS as error:
        raise SoakwatchError(failure_of(error, server, _WAIT_S, _REMEDIES).text) from None
    return _parsed(server, status, b"".join(parts))


def _parsed(server: str, status: int, body: bytes) -> dict[str, object]:
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SoakwatchError(f"{server} answers with {status} and no JSON: it is not a Soakwatch server")
    if status < 300:
        return cast("dict[str, object]", data)
    sentence = str(data.get("error", f"the answer is {status}"))[:500]
    if status == 409:
        raise EventConflictError(sentence)
    if status == 400:
        raise EventRefusedError(sentence)
    if status == 401:
        raise SoakwatchError(f"{server} rejects this token: use the one in its web.token file")
    raise SoakwatchError(f"{server}: {sentence}")


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
        raise SoakwatchError(
            "the event was recorded, but the answer is not understood: check that the server has the same version"
        ) from None


def _interim_verdict(answer: Mapping[str, object]) -> InterimVerdict:
    try:
        listed = cast("list[object]", answer["findings"])
        findings = tuple(finding_from_json(json.dumps(listed_finding)) for listed_finding in listed)
        until = answer.get("until")
        until_ns = None if until is None else moment(str(until))
        verdict = answer.get("verdict")
        if verdict is not None:
            return InterimVerdict(Outcome(str(verdict)), str(answer.get("reason")), findings, until_ns)
    except (KeyError, TypeError, ValueError, LookupError):
        raise SoakwatchError(
            "the server's answer is not understood: check that it has the same version of Soakwatch"
        ) from None
    failed = [listed_finding for listed_finding in findings if listed_finding.outcome is Outcome.FAIL]
    if failed:
        return InterimVerdict(Outcome.FAIL, f"{failed[0].rule}: {failed[0].sentence}", findings, until_ns)
    return InterimVerdict(
        Outcome.INCONCLUSIVE, "the run is still going on, and nothing has failed so far", findings, until_ns
    )
