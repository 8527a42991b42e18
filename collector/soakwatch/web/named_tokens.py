"""Tokens of people, each with a name and a role: a file of hashes, beside the queue of a folder of runs.

A token has 256 random bits, so its plain SHA-256 cannot be guessed back; the token itself is shown once and kept
nowhere. The server reads the file again when it changes: a token that is removed is refused at the next request.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.private_files import make_private_folder, write_private
from soakwatch.core.suggest import hint
from soakwatch.lab.job_files import lab_folder

FILE = "tokens.json"
ROLES = ("viewer", "operator", "admin")
"""The roles, each with all that the ones before it may do."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_PREFIX = "soak-"
_BEARER = "Bearer "


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token of a person: who, in which role, its hash, and when it was made (UTC ns)."""

    name: str
    role: str
    sha256: str
    made_ns: int


class NamedTokens:
    """The tokens of a folder of runs."""

    def __init__(self, runs: Path) -> None:
        self.file = lab_folder(runs) / FILE
        self._stamp: tuple[int, int, int] | None = None
        self._kept: tuple[NamedToken, ...] = ()

    def all(self) -> tuple[NamedToken, ...]:
        """Every token. Raises SoakwatchError if the file is damaged."""
        try:
            status = self.file.stat()
        except OSError:
            self._stamp, self._kept = None, ()
            return ()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp != self._stamp:
            self._kept, self._stamp = _read(self.file), stamp
        return self._kept

    def holder(self, authorization: str) -> NamedToken | None:
        """Whose token an Authorization header has. All are compared, in constant time."""
        shown = hashlib.sha256(authorization.removeprefix(_BEARER).encode("utf-8", "replace")).hexdigest()
        found = [one for one in self.all() if hmac.compare_digest(one.sha256, shown)]
        return found[0] if found and authorization.startswith(_BEARER) else None

    def named(self, name: str) -> NamedToken | None:
        """The token of a name."""
        return next((one for one in self.all() if one.name == name), None)

    def add(self, name: str, role: str) -> str:
        """Make a token, which is returned and kept as a hash. Raises SoakwatchError for a name that is taken or is
        none."""
        if _NAME.fullmatch(name) is None:
            raise SoakwatchError(
                f"{name[:60]!r} cannot name a token: write letters, digits and . _ @ -, such as anna or ci-nightly"
            )
        if role not in ROLES:
            raise SoakwatchError(f"{role!r} is not a role{hint(role, ROLES)}: write {', '.join(ROLES)}")
        token = _PREFIX + secrets.token_urlsafe(32)
        with self._changing() as kept:
            if any(one.name == name for one in kept):
                raise SoakwatchError(f"there is a token {name} already: remove it first, or choose another name")
            kept.append(NamedToken(name, role, hashlib.sha256(token.encode()).hexdigest(), time.time_ns()))
        return token

    def remove(self, *names: str) -> None:
        """Forget tokens; their next requests are refused. Raises SoakwatchError and forgets none if one is missing."""
        with self._changing() as kept:
            known = [one.name for one in kept]
            for name in names:
                if name not in known:
                    raise SoakwatchError(f"there is no token {name!r}{hint(name, known)}")
            kept[:] = [one for one in kept if one.name not in names]

    @contextmanager
    def _changing(self) -> Iterator[list[NamedToken]]:
        try:
            make_private_folder(self.file.parent)
            descriptor = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                kept = list(self.all())
                yield kept
                new = self.file.with_suffix(".new")
                write_private(new, json.dumps({"tokens": [asdict(one) for one in kept]}, indent=1))
                new.replace(self.file)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SoakwatchError(f"{self.file} cannot be written: {error.strerror}") from None


def _read(file: Path) -> tuple[NamedToken, ...]:
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))["tokens"]
        kept = tuple(NamedToken(**one) for one in listed)
    except (OSError, ValueError, KeyError, TypeError):
        raise SoakwatchError(
            f"{file} is damaged: remove it, and make the tokens anew with soakwatch token add"
        ) from None
    return tuple(one for one in kept if one.role in ROLES)
