"""Requests to an Open Traffic Generator's REST interface, in JSON; errors are one sentence.

The paths are those of the model since 0.13 (``/monitor/metrics``, ``/control/state``, ``/config``,
``/capabilities/version``; open-traffic-generator/models, artifacts/openapi.yaml).
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch.sources.transport.http import PeerError, WebAccess, WebConfig, shown, web_access
from soakwatch.sources.transport.http_client import Cause
from soakwatch_model.tree import Tree

_REMEDY = "check that url is that of the controller's REST interface"
_REMEDIES = {Cause.REFUSED: "nothing listens on that port; is the controller running, and the port right?"}
_MAX_ERROR = 200  # characters of a controller's own error


class RefusedError(SourceError):
    """The controller answered with the HTTP error ``status``."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class OtgApi:
    """One controller; the connection is kept, and reopened when it breaks."""

    def __init__(self, config: WebConfig, access: WebAccess) -> None:
        self._user, self._access = config.user, access
        self.where = shown(config.url.rstrip("/"))
        """Its name in errors."""

    async def call(self, method: str, path: str, body: Tree = None) -> Tree:
        """The JSON answer, None if empty.

        Raises PeerError, SourceError, LoginRefusedError, and RefusedError for the controller's own errors.
        """
        where = f"{self.where}{path}"
        headers = {"accept": "application/json"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body).encode()
        page = await self._access.request(method, path, headers, content)
        if page.status == 401 and self._user is not None:
            raise LoginRefusedError(f"{where} refuses the login of {self._user}: check user and password")
        if not 200 <= page.status < 300:
            raise RefusedError(page.status, f"{where} answers with status {page.status}{_error_text(page.body)}")
        if not page.body.strip():
            return None
        try:
            tree: Tree = json.loads(page.body)
        except (ValueError, RecursionError):
            raise PeerError(f"{where} does not answer with JSON: {_REMEDY}") from None
        return tree


async def otg_api(config: WebConfig, target: str, limit_s: float, stack: AsyncExitStack) -> OtgApi:
    """A client for a controller; ``limit_s`` is the timeout of its polls. Raises as ``web_access`` does."""
    return OtgApi(config, await web_access(config, target, limit_s, stack, _REMEDIES))


def _error_text(body: bytes) -> str:
    """The first error in the controller's answer."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return f": {_REMEDY}"
    errors = tree.get("errors") if isinstance(tree, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return f": {' '.join(first.split())[:_MAX_ERROR]}" if isinstance(first, str) else ""
