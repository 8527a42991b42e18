"""Runs the program ``ipmitool`` against one controller; errors are one sentence.

The Python libraries are not sufficient: pyghmi 1.6 does not read thresholds, keeps sockets and threads in globals, and
hangs on a sensor's name in 6-bit ASCII. The password is passed in the environment, which other accounts cannot read.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from soakwatch.core.stderr_tail import last_line
from soakwatch.sources.abc import LoginRefusedError, SourceError

_REPOSITORY_S = 120.0  # hundreds of records, at a tenth of a second each
_TRIES = ("-N", "1", "-R", "2")

_REFUSED: Final = {
    "RAKP 2 HMAC is invalid": "refuses the login: the password is wrong",
    "unauthorized name": "refuses the login: it has no such user",
    "unauthorized role": "does not give this user that privilege: set privilege to what the account has",
    "Activate Session error": "refuses the login: set user, password and privilege",
}
_FAILED: Final = {
    "Address lookup for": "is no name that this machine knows: check host, or this machine's name service",
    "invalid authentication algorithm": "does not have that cipher suite: set cipher to 3 or 17",
    "invalid integrity algorithm": "does not have that cipher suite: set cipher to 3 or 17",
    "invalid confidentiality algorithm": "does not have that cipher suite: set cipher to 3 or 17",
    "no matching cipher suite": "does not have that cipher suite: set cipher to 3 or 17",
    "insufficient resources": "has no session left: end those of others, or ask less often",
    "Get Auth Capabilities error": "does not answer over IPMI: check host and port, and that IPMI over LAN is enabled",
    "does not support IPMI v2": "speaks no IPMI 2.0 over the network",
    "Unable to establish": "opens no session over IPMI: check user, password, privilege and cipher",
}
_NOT_OFFERED: Final = ("Invalid command", "Invalid data field", "privilege level (d4)", "not supported", "Unknown")


class NotOfferedError(SourceError):
    """The controller answered that it does not know this command, or does not allow it at this privilege."""


@dataclass(frozen=True, slots=True)
class Ipmitool:
    """The program, the options for a controller, and ``where`` it is, for messages."""

    program: str
    options: tuple[str, ...]
    password: str = field(repr=False)
    where: str

    async def run(self, *command: str) -> str:
        """The output of a command. Raises LoginRefusedError, NotOfferedError, or SourceError, in one sentence."""
        environment = {**os.environ, "IPMITOOL_PASSWORD": self.password, "LC_ALL": "C"}
        process = await asyncio.create_subprocess_exec(
            self.program,
            *("-I", "lanplus", "-v", *_TRIES, *self.options, "-E", *command),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env=environment,
        )
        try:
            async with asyncio.timeout(_REPOSITORY_S):
                output, errors = await process.communicate()
        except TimeoutError:
            raise SourceError(f"{self.where} did not end its answer within {_REPOSITORY_S:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode:
            raise self._failure(errors.decode("utf-8", "replace"), output)
        return output.decode("utf-8", "replace")

    def _failure(self, said: str, output: bytes) -> SourceError:
        for words, why in _REFUSED.items():
            if words in said:
                return LoginRefusedError(f"{self.where} {why}")
        for words, why in _FAILED.items():
            if words in said:
                return SourceError(f"{self.where} {why}")
        why = last_line(said.encode()) or last_line(output)
        if any(words in said for words in _NOT_OFFERED):
            return NotOfferedError(why.rpartition(": ")[2])
        return SourceError(f"{self.where} does not answer ipmitool's command: {why}")
