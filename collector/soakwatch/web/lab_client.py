"""HTTP client of a lab server's queue, for the commands submit and queue."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from httpx import Response

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.secrets import Secret, secret
from soakwatch.runs.catalog import ADDRESS_FILE, TOKEN_FILE
from soakwatch.sources.transport.http_client import (
    LOOPBACK,
    REQUEST_ERRORS,
    Cause,
    failure_of,
    sync_client,
    tls_context,
)
from soakwatch.web.access import served_at
from soakwatch.web.client import TOKEN_VARIABLE

SERVER_VARIABLE = "SOAKWATCH_SERVER"
_WAIT_S = 30.0
_REMEDIES = {
    Cause.TIMEOUT: "check that soakwatch serve --plans is still running",
    Cause.REFUSED: "check that soakwatch serve --plans is running, and its address",
    Cause.CERTIFICATE: "name its CA bundle with --ca",
}
Answer = Mapping[str, object]


class NoAnswerError(SoakwatchError):
    """The server did not answer: it may be starting again."""


@dataclass(frozen=True, slots=True)
class LabServer:
    """A server at ``base`` (http://HOST:PORT), and the token that it is shown."""

    base: str
    token: str = field(repr=False)
    token_name: str = ""
    ca: str | None = None

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """The answer to a request. Raises PlanError with all problems of a plan, NoAnswerError, SoakwatchError."""
        return self._checked(self._sent(method, path, body))

    def text(self, path: str) -> str:
        """The text at a path. Raises as ``ask``."""
        response = self._sent("GET", path, None)
        if not response.is_success:
            self._checked(response)
        return response.text

    def _sent(self, method: str, path: str, body: Mapping[str, object] | None) -> Response:
        url = f"{self.base}{path}"
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        owner, context = f"the token of {self.token_name}", tls_context(url, self.ca)
        try:
            with sync_client(headers, _WAIT_S, owner=owner, context=context) as client:
                return client.request(method, url, content=json.dumps(body or {}).encode())
        except REQUEST_ERRORS as error:
            raise NoAnswerError(failure_of(error, self._netloc, _WAIT_S, _REMEDIES).text) from None

    def _checked(self, response: Response) -> Answer:
        try:
            data: object = response.json()
        except ValueError:
            data = None
        status, netloc = response.status_code, self._netloc
        if not isinstance(data, dict):
            raise SoakwatchError(f"{netloc} answers with {status} and no JSON: it is no Soakwatch server")
        if status < 300:
            return cast("dict[str, object]", data)
        problems = data.get("problems")
        if isinstance(problems, list) and problems:
            raise PlanError(*(str(problem) for problem in problems))
        if status == 401:
            raise SoakwatchError(f"{netloc} rejects the token of {self.token_name}: ask its admin for one")
        raise SoakwatchError(str(data.get("error", f"{netloc} answers with {status}"))[:1000])

    @property
    def _netloc(self) -> str:
        return urlsplit(self.base).netloc


def lab_server(url: str | None, token: str | None, ca: str | None, runs: Path) -> LabServer:
    """The server that is meant: at a URL, by default that of ``SOAKWATCH_SERVER``, else the one that serves the folder
    ``runs`` on this machine, with the token that it keeps there. Raises PlanError, SoakwatchError."""
    url = url or os.environ.get(SERVER_VARIABLE) or None
    given = _given_token(token)
    if url is None:
        return _of_folder(runs, given, ca)
    parts = urlsplit(url)
    try:
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        parts.port  # noqa: B018 - a port that cannot be raises
    except ValueError:
        good = False
    if not good or parts.path not in {"", "/"}:
        raise PlanError(f"{url[:80]!r} is not the address of a server: write http://HOST:PORT")
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise PlanError("the token would cross the network in clear text: use https")
    if given is None:
        raise PlanError(
            f"{parts.netloc} requires a token: export {TOKEN_VARIABLE}, or give --token env:NAME or file:PATH"
        )
    return LabServer(f"{parts.scheme}://{parts.netloc}", given.reveal(), given.reference, ca)


def _given_token(token: str | None) -> Secret | None:
    if token is None and not os.environ.get(TOKEN_VARIABLE):
        return None
    try:
        return secret(token or f"env:{TOKEN_VARIABLE}")
    except ValueError:
        raise PlanError("a token must not be given in clear text: write env:NAME or file:PATH") from None


def _of_folder(runs: Path, given: Secret | None, ca: str | None) -> LabServer:
    """The server of a folder of this machine."""
    try:
        base = (runs / ADDRESS_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise SoakwatchError(
            f"no server serves {runs}: start soakwatch serve {runs} --plans DIR, or name one with --server URL"
        ) from None
    if given is not None:
        return LabServer(base, given.reveal(), given.reference, ca)
    served = served_at(runs)
    assert served is not None, "its address was read"
    return LabServer(base, served[1].key().decode(), f"{runs / TOKEN_FILE}", ca)


def number_of(text: str) -> str:
    """A job or schedule as a path has it. Raises PlanError."""
    if re.fullmatch(r"s?\d{1,15}", text) is None:
        raise PlanError(f"{text[:40]!r} is neither a job (17) nor a schedule (s3): soakwatch queue list shows them")
    return text
