"""Which host keys are trusted: known_hosts as OpenSSH keeps it, one pinned key, or the first that is seen.

Matching of host names, hashed names, patterns and certificates is asyncssh's; here is what it found and why not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import asyncssh

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.ssh.ssh_access import Access, Login

_MAX_KNOWN_HOSTS_BYTES = 16 << 20
Keys = list[asyncssh.SSHKey]
Matched = tuple[Keys, Keys, Keys]  # keys of hosts, of authorities, and revoked ones


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A known_hosts file as text; one that does not exist has none."""

    path: Path
    text: str | None

    def lines_for(self, host: str, port: int) -> list[tuple[int, asyncssh.SSHKey]]:
        """The plain keys for a host with the numbers of their lines (marked and unreadable lines are left out)."""
        matches = []
        for number, line in enumerate((self.text or "").splitlines(), 1):
            if line.lstrip().startswith(("#", "@")) or not line.strip():
                continue
            matches += [(number, key) for key in _match(line, host, port)[0]]
        return matches


def read_known(path: Path) -> KnownFile:
    """Reads a file. Raises PlanError if it is there and cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_KNOWN_HOSTS_BYTES + 1)
    except FileNotFoundError:
        return KnownFile(path, None)
    except OSError as error:
        raise PlanError(
            f"the known_hosts file {path} cannot be read: {(error.strerror or 'unknown').lower()}"
        ) from None
    if len(data) > _MAX_KNOWN_HOSTS_BYTES:
        raise PlanError(f"the known_hosts file {path} is larger than 16 MiB: give another one")
    return KnownFile(path, _passable(data.decode("utf-8", "replace")))


def _match(text: str, host: str, port: int) -> Matched:
    known = asyncssh.import_known_hosts(text).match(host, "", port if port != 22 else None)
    return cast("Matched", tuple(list(part) for part in known[:3]))


def match(files: tuple[KnownFile, ...], host: str, port: int) -> Matched:
    """What all files say of a host. X.509 certificates are not taken."""
    merged: Matched = [], [], []
    for file in files:
        for into, more in zip(merged, _match(file.text or "", host, port), strict=True):
            into.extend(more)
    return merged


def _passable(text: str) -> str:
    """The text with unreadable lines replaced by empty ones: OpenSSH skips them as well."""
    if _readable(text):
        return text
    return "\n".join(line if _readable(line) else "" for line in text.splitlines())


def _readable(text: str) -> bool:
    try:
        asyncssh.import_known_hosts(text)
    except ValueError:
        return False
    return True


@dataclass
class HostKeyVerifier:
    """Verifies the host key of one server; afterwards ``how`` says how it was verified, or ``refusal`` why not."""

    login: Login
    files: tuple[KnownFile, ...]
    first_use: Path | None = None  # where a new key is kept, if a new one may be trusted
    how: str = ""
    refusal: str = ""
    note: str = ""

    def trusted(self, host: str, _addr: str, port: int | None) -> Matched:
        """The keys that asyncssh may accept by itself; none with a pinned key, so that it asks ``accepts``."""
        if self.login.host_key is not None:
            return [], [], []
        return match(self.files, host, port or 22)

    def accepts(self, key: asyncssh.SSHKey) -> bool:
        """True for the pinned key, and for a key that is trusted on first use; else ``refusal`` says why not."""
        shown, where = fingerprint_of(key), _address(self.login)
        if self.login.host_key is not None:
            if shown == self.login.host_key:
                self.how = "pinned in the plan"
                return True
            self.refusal = (
                f"the host key of {where} is {shown} ({_algorithm(key)}), not the pinned {self.login.host_key}: if the "
                f"device was given a new key, change host_key; if not, the connection is intercepted"
            )
            return False
        for file in self.files:
            for number, known in file.lines_for(self.login.host, self.login.port):
                self.refusal = (
                    f"the host key of {where} changed: {file.path}:{number} has {fingerprint_of(known)} "
                    f"({_algorithm(known)}), the device shows {shown} ({_algorithm(key)}), which was refused; if the "
                    f"device was given a new key, remove that line ({_forget(self.login, file.path)}), if not, "
                    f"the connection is intercepted"
                )
                return False
        if self.first_use is None:
            files = " or ".join(str(file.path) for file in self.files)
            self.refusal = (
                f"the host key of {where} is unknown: {shown} ({_algorithm(key)}) is not in {files}; compare it with "
                f"the device's console, then add it with ssh-keyscan, pin it with host_key: {shown}, or "
                f"accept it once with trust: first_use (?trust=first_use)"
            )
            return False
        return self._trust_first(key, shown, self.first_use)

    def _trust_first(self, key: asyncssh.SSHKey, shown: str, keep: Path) -> bool:
        login = self.login
        name = login.host if login.port == 22 else f"[{login.host}]:{login.port}"
        line = f"{name} {key.export_public_key().decode().strip()}\n"
        try:
            descriptor = os.open(keep, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            why = (error.strerror or "unknown").lower()
            self.refusal = f"the host key of {_address(login)} could not be kept in {keep}: {why}"
            return False
        self.how = "trusted on first use"
        self.note = f"host key {shown} of {_address(login)} trusted on first use: compare it with the device's console"
        return True


def doorkeeper(login: Login, access: Access, folder: Path) -> HostKeyVerifier:
    """The doorkeeper of a server on the way to a device (or of the device). Raises PlanError for unreadable files."""
    kept = folder / "known_hosts"
    path = Path(access.known_hosts or "~/.ssh/known_hosts").expanduser()
    if login.host_key is not None:
        return HostKeyVerifier(login, ())
    if access.trust == "first_use":
        return HostKeyVerifier(login, (read_known(kept), read_known(path)), kept)
    if access.known_hosts is not None and not path.exists():
        raise PlanError(f"there is no known_hosts file {path}: make it with ssh-keyscan {login.host}, or pin host_key")
    return HostKeyVerifier(login, (read_known(path),))


def fingerprint_of(key: asyncssh.SSHKey) -> str:
    """SHA256:... as ssh-keygen shows it."""
    return key.get_fingerprint().rstrip("=")


def _algorithm(key: asyncssh.SSHKey) -> str:
    return key.get_algorithm()


def _address(login: Login) -> str:
    host = f"[{login.host}]" if ":" in login.host else login.host
    return f"{host}:{login.port}"


def _forget(login: Login, path: Path) -> str:
    name = login.host if login.port == 22 else f"'[{login.host}]:{login.port}'"
    return f"ssh-keygen -f {path} -R {name}"
