"""What stands for the token where it may not be shown: in links and cookies. All of it is derived and never kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from soakwatch.web.access import Token


def derived(token: Token, purpose: str) -> str:
    """A word that only the holder of the token can make, another one for each purpose (HMAC-SHA256, RFC 2104)."""
    digest = hmac.new(token.key(), f"soakwatch {purpose}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def one_time_code(token: Token, until_s: float) -> str:
    """A code that lets a browser in once, until a time (seconds since 1970)."""
    head = f"{int(until_s):x}.{secrets.token_urlsafe(9)}"
    return f"{head}.{derived(token, f'enter {head}')}"


def holds(token: Token, code: str, now_s: float) -> bool:
    """Whether a code is one of this token's, and still good. That it works once is the server's to see to."""
    head, _, signed = code.rpartition(".")
    if not same(signed, derived(token, f"enter {head}")):
        return False
    return now_s <= int(head.partition(".")[0], 16)


def same(one: str, other: str) -> bool:
    """Whether two words are equal; takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
