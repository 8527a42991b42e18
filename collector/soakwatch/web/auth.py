"""Who asks, and what they may do: the server's token allows everything, a secret derived from it only viewing, a
person's token what the role allows, and a trusted proxy says who asks; browsers get a cookie for each. Also the login
page, and the security headers of every answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from soakwatch.lab.lab_model import User
from soakwatch.web.access import MAX_USED_CODES, Token, derived, equal_in_constant_time, is_valid_code
from soakwatch.web.endpoint import ANYBODY, May
from soakwatch.web.named_tokens import NamedToken, NamedTokens
from soakwatch.web.trusted_proxy import TrustedProxy

ROLES: Mapping[str, May] = {"viewer": May.VIEW, "operator": May.ACT, "admin": May.ADMIN}
"""What each role may do."""
_COOKIES = {May.ADMIN: "act", May.VIEW: "view"}
_OWN = {May.ADMIN: User("server token", "admin"), May.VIEW: User("view-only link", "viewer")}
"""Who is known by the server's own token alone."""


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
<form method="post" action="/enter">
<label>Or enter your token, or that of this server, from its file <code>web.token</code>
<input type="password" name="token" autocomplete="off" required></label><button>Log in</button></form>
</main></body></html>
"""


@dataclass(frozen=True, slots=True)
class Client:
    """Who sends a request, and what they may do; ``by_proxy`` if a trusted proxy says so."""

    may: May
    user: User
    by_proxy: bool = False


NOBODY = Client(May.NOTHING, ANYBODY)


class UsedCodes:
    """The one-time codes that were used, of which ``before`` are those that another process took; ``tell`` hears of
    each new one."""

    def __init__(self, before: Iterable[str] = (), tell: Callable[[str], None] = lambda _: None) -> None:
        self._codes, self._tell = list(before)[-MAX_USED_CODES:], tell
        self._lock = threading.Lock()

    def take(self, token: Token, code: str) -> bool:
        """Whether the code was valid; it is used up by this call."""
        with self._lock:
            if code in self._codes or not is_valid_code(token, code, time.time()):
                return False
            self._codes = [*self._codes, code][-MAX_USED_CODES:]
            self._tell(code)
        return True


class Authenticator:
    """Determines from a request's headers what it may do, and logs browsers in.

    A browser cannot send an authorization header by itself. It logs in by a one-time code (``/enter/CODE``), by the
    token in a form, or by the view-only link (``/view/WORD``), and gets a cookie that scripts cannot read and other
    sites' pages cannot use. Cookies ignore ports, so the cookie's name contains the port.
    """

    def __init__(
        self,
        token: Token,
        port: int,
        people: NamedTokens | None = None,
        proxy: TrustedProxy | None = None,
        used: UsedCodes | None = None,
    ) -> None:
        self._token, self.cookie = token, f"soakwatch-{port}"
        self._people, self._proxy = people, proxy
        self._used = used or UsedCodes()

    def client(self, headers: Headers, cookies: Mapping[str, str], address: str) -> Client:
        """Who sends a request with these headers from this address. Raises SoakwatchError if the file of tokens is
        damaged."""
        authorization = headers.get("authorization", "")
        proxy = self._proxy if self._proxy is not None and self._proxy.trusts(address) else None
        # A proxy may pass on what it was logged in by itself (Basic), which is none of ours.
        if authorization and (proxy is None or authorization.startswith("Bearer ")):
            return self.bearer(authorization)
        if proxy is not None:
            said = proxy.user(headers.getlist(proxy.user_header), headers.getlist(proxy.role_header))
            if said is not None:
                return Client(ROLES[said[1]], User(*said), by_proxy=True)
        return self._by_cookie(cookies.get(self.cookie, ""))

    def bearer(self, authorization: str) -> Client:
        """Who shows the token of an Authorization header."""
        if self._token.fits(authorization):
            return _own(May.ADMIN)
        if self.is_view_word(authorization.removeprefix("Bearer ")):
            return _own(May.VIEW)
        one = None if self._people is None else self._people.holder(authorization)
        return NOBODY if one is None else _person(one)

    def _by_cookie(self, shown: str) -> Client:
        for role, word in _COOKIES.items():
            if equal_in_constant_time(shown, derived(self._token, f"cookie {word}")):
                return _own(role)
        name, dot, signed = shown.rpartition(".")
        one = self._people.named(name) if dot and self._people is not None else None
        fits = one is not None and equal_in_constant_time(signed, self._signed(one))
        return _person(one) if one is not None and fits else NOBODY

    def _signed(self, one: NamedToken) -> str:
        """What the cookie of a person proves; no longer right once the token is removed, made anew, or has another
        role."""
        return derived(self._token, f"cookie of {one.name} {one.role} {one.sha256}")

    def is_view_word(self, word: str) -> bool:
        """Whether this is the secret of the view-only link."""
        return equal_in_constant_time(word, derived(self._token, "view"))

    def enter(self, code: str) -> bool:
        """Whether the code was valid; it is used up by this call."""
        return self._used.take(self._token, code)

    def let_in(self, client: Client, *, secure: bool) -> Response:
        """Redirect to the page, with the cookie set."""
        answer = RedirectResponse("/", 303, {"cache-control": "no-store"})
        one = None if self._people is None or client in _OWNS else self._people.named(client.user.name)
        word = (
            derived(self._token, f"cookie {_COOKIES[client.may]}") if one is None else f"{one.name}.{self._signed(one)}"
        )
        answer.set_cookie(self.cookie, word, httponly=True, samesite="lax", secure=secure, path="/")
        return answer


def _own(may: May) -> Client:
    return Client(may, _OWN[may])


def _person(one: NamedToken) -> Client:
    return Client(ROLES[one.role], User(one.name, one.role))


HOLDER, VIEWER = _own(May.ADMIN), _own(May.VIEW)
"""Who has the token of the server, and who has its view-only link."""
_OWNS = frozenset({HOLDER, VIEWER})
