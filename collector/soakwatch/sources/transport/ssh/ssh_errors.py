"""What went wrong on the way to a device, in one sentence with the remedy; no text of a secret is ever quoted."""

from __future__ import annotations

import errno
import socket

import asyncssh

from soakwatch.core.text import one_line
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch_agent.procfs import clean

_CUT = 160
_SYSTEM = {
    errno.ECONNREFUSED: "refused the connection: no SSH server listens there; check the port and that sshd runs",
    errno.EHOSTUNREACH: "cannot be reached: no route to the host",
    errno.ENETUNREACH: "cannot be reached: no route to its network",
    errno.ECONNRESET: "closed the connection",
    errno.EPIPE: "closed the connection",
    errno.ETIMEDOUT: "does not answer",
    errno.ECONNABORTED: "closed the connection",
}


def failed(where: str, error: BaseException, tried: str = "") -> SourceError:
    """The sentence for an exception of asyncssh or of the system. ``where`` is ``user@host:port``, ``tried`` the ways
    in which a login was tried. A denied login is a LoginRefusedError."""
    if isinstance(error, SourceError):
        return error
    kind = LoginRefusedError if isinstance(error, asyncssh.PermissionDenied) else SourceError
    return kind(f"{where} {_because(error, tried)}")


def _because(error: BaseException, tried: str) -> str:
    match error:
        case asyncssh.PermissionDenied():
            return f"denied the login (tried: {tried or 'nothing'}): check user, key and password"
        case asyncssh.HostKeyNotVerifiable():
            return f"showed a host key that is not trusted: {printable(error.reason)}"
        case asyncssh.KeyExchangeFailed():
            return (
                f"and this machine have no algorithm in common ({printable(error.reason)}): known_hosts "
                f"may hold keys of "
                "another type, or the device's SSH is too old"
            )
        case asyncssh.ConnectionLost():
            return "lost the connection: the device or the network closed it or went silent"
        case asyncssh.ProtocolNotSupported() | asyncssh.ProtocolError():
            return f"violates the SSH protocol: {printable(error.reason)}"
        case asyncssh.DisconnectError():
            return f"ended the connection: {printable(error.reason)}"
        case asyncssh.ChannelOpenError():
            if "closed" in error.reason.lower():
                return "lost the connection: the device or the network closed it or went silent"
            return (
                f"opened no session ({printable(error.reason)}): its limit of sessions (MaxSessions) may be used up, "
                "or the account may not run commands"
            )
        case TimeoutError():
            return "does not answer: no connection in time"
        case socket.gaierror():
            return "has a name that cannot be resolved: check host"
        case OSError():
            # asyncssh raises it without a number for a channel that is closed.
            known = _SYSTEM.get(error.errno or (errno.EPIPE if isinstance(error, ConnectionError) else 0))
            return known or f"cannot be reached: {(error.strerror or type(error).__name__).lower()}"
        case asyncssh.Error():
            return f"failed: {printable(error.reason)}"
    return f"failed: {type(error).__name__}"


def printable(text: str) -> str:
    """A device's own words, in one line of printable characters and cut short.

    >>> printable("no\\x1b[2J\\r\\nmore")
    'no [2J more'
    """
    return one_line(clean(text), _CUT)
