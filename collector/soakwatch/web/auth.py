"""Authorisation: the token allows everything, a secret derived from it only viewing; browsers get a cookie for either.
Also the login page, and the security headers of every answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from soakwatch.web.access import Token, derived, equal_in_constant_time, is_valid_code
from soakwatch.web.endpoint import May

_COOKIES = {May.ACT: "act", May.VIEW: "view"}
_MAX_USED_CODES = 1000


GUARDS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
"""Nothing is loaded from elsewhere, no inline script runs, and no other page may frame this one."""

LOGIN_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Soakwatch</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem}
input,button{font:inherit;padding:.4rem .6rem}
input{width:100%;box-sizing:border-box;margin:.3rem 0 .6rem}
code{background:color-mix(in srgb,currentColor 10%,transparent);padding:.1rem .3rem}
</style></head><body><main>
<h1>Soakwatch</h1>
<p role="status">{sentence}</p>
<p>To get a login link, run <code>soakwatch open last</code> on the machine of the run;
for read-only access, <code>soakwatch open last --view-only</code>.</p>
<form method="post" action="/enter"><label>Or enter the token of this server, from its file <code>web.token</code>
<input type="password" name="token" autocomplete="off" required></label><button>Log in</button></form>
</main></body></html>
"""


class Authenticator:
    """Determines from a request's headers what it may do, and logs browsers in.

    A browser cannot send an authorization header by itself. It logs in by a one-time code (``/enter/CODE``), by the
    token in a form, or by the view-only link (``/view/WORD``), and gets a cookie that scripts cannot read and other
    sites' pages cannot use. Cookies ignore ports, so the cookie's name contains the port.
    """

    def __init__(self, token: Token, port: int) -> None:
        self._token, self.cookie = token, f"soakwatch-{port}"
        self._used: list[str] = []
        self._lock = threading.Lock()

    def may(self, authorization: str, cookies: Mapping[str, str]) -> May:
        """What a client that sends these headers may do."""
        if authorization:
            if self._token.fits(authorization):
                return May.ACT
            return May.VIEW if self.is_view_word(authorization.removeprefix("Bearer ")) else May.NOTHING
        shown = cookies.get(self.cookie, "")
        fits = (
            role
            for role, word in _COOKIES.items()
            if equal_in_constant_time(shown, derived(self._token, f"cookie {word}"))
        )
        return next(fits, May.NOTHING)

    def is_view_word(self, word: str) -> bool:
        """Whether this is the secret of the view-only link."""
        return equal_in_constant_time(word, derived(self._token, "view"))

    def enter(self, code: str) -> bool:
        """Whether the code was valid; it is used up by this call."""
        with self._lock:
            if code in self._used or not is_valid_code(self._token, code, time.time()):
                return False
            self._used = [*self._used, code][-_MAX_USED_CODES:]
        return True

    def let_in(self, role: May, *, secure: bool) -> Response:
        """Redirect to the page, with the cookie set."""
        answer = RedirectResponse("/", 303, {"cache-control": "no-store"})
        word = derived(self._token, f"cookie {_COOKIES[role]}")
        answer.set_cookie(self.cookie, word, httponly=True, samesite="lax", secure=secure, path="/")
        return answer
