"""Who may do what: the token acts, the word derived from it only looks, and a browser gets a cookie for either."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from soakwatch.web.access import Token
from soakwatch.web.endpoint import May
from soakwatch.web.passes import derived, holds, same

_COOKIES = {May.ACT: "act", May.VIEW: "view"}
_MOST_USED = 1000


class Authenticator:
    """Decides by a request's headers what it may do, and lets browsers in.

    A browser cannot send a header by itself. It enters by a code that works once (``/enter/CODE``), by the token typed
    into a form, or by the link for looking only (``/view/WORD``), and gets a cookie that no script can read and that
    other sites' pages cannot use to act. Cookies do not tell ports apart, so their name holds the port.
    """

    def __init__(self, token: Token, port: int) -> None:
        self._token, self.cookie = token, f"soakwatch-{port}"
        self._used: list[str] = []
        self._lock = threading.Lock()

    def may(self, authorization: str, cookies: Mapping[str, str]) -> May:
        """What the one who sends these headers may do."""
        if authorization:
            if self._token.fits(authorization):
                return May.ACT
            return May.VIEW if self.looks(authorization.removeprefix("Bearer ")) else May.NOTHING
        shown = cookies.get(self.cookie, "")
        fits = (role for role, word in _COOKIES.items() if same(shown, derived(self._token, f"cookie {word}")))
        return next(fits, May.NOTHING)

    def looks(self, word: str) -> bool:
        """Whether this is the word for looking only."""
        return same(word, derived(self._token, "view"))

    def enter(self, code: str) -> bool:
        """Whether the code was good; it is not any more."""
        with self._lock:
            if code in self._used or not holds(self._token, code, time.time()):
                return False
            self._used = [*self._used, code][-_MOST_USED:]
        return True

    def let_in(self, role: May, *, secure: bool) -> Response:
        """The way on to the page, with the cookie."""
        answer = RedirectResponse("/", 303, {"cache-control": "no-store"})
        word = derived(self._token, f"cookie {_COOKIES[role]}")
        answer.set_cookie(self.cookie, word, httponly=True, samesite="lax", secure=secure, path="/")
        return answer
