"""The keys of a login: from a file, from a variable, from the SSH agent, or the user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import asyncssh

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.sources.abc import SourceError
from soakwatch.sources.transport.ssh.ssh_access import Login

_OWN = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")
_MAX_KEY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a login is tried with. ``tried`` names it without showing it; the password is in nobody's repr."""

    keys: Sequence[asyncssh.SSHKeyPair]
    agent_path: str | None
    password: str | None
    tried: str

    def __repr__(self) -> str:
        return f"Credentials({self.tried})"


def credentials(login: Login, device: Login | None = None) -> Credentials:
    """Reads keys and secrets now; slow (a passphrase costs 100 ms), so it belongs in a thread.

    A jump host that names no means of its own is tried with the key of the ``device`` behind it as well; never with
    its password, which the jump host would see.

    Raises PlanError for a key or secret that cannot be used, SourceError for an SSH agent that is not there.
    """
    keys: Sequence[asyncssh.SSHKeyPair] = ()
    tried: list[str] = []
    if login.key is not None:
        keys = _load(login, login.key)
        tried.append(f"key {login.key}")
    agent = _agent(login)
    if login.key is None and login.password is None and not login.agent:
        keys, names = _own_keys()
        tried += names
        if device is not None and device.key is not None:
            keys = [*keys, *_load(device, device.key)]
            tried.append(f"key {device.key}")
    if agent is not None:
        tried.append("the SSH agent")
    password = None
    if login.password is not None:
        password = secret(login.password).reveal()
        tried.append(f"password {login.password}")
    if not tried:
        raise PlanError(
            f"no SSH key for {login.host} in ~/.ssh: add key: PATH (on the command line ?key=PATH), password: env:NAME "
            "or agent: true; ~/.ssh/config is read with ssh_config: true"
        )
    return Credentials(keys, agent, password, ", ".join(tried))


async def agent_keys(means: Credentials, login: Login, stack: AsyncExitStack) -> Sequence[asyncssh.SSHKeyPair]:
    """The keys of the SSH agent, which has to stay open in ``stack`` until the login is over; none without an agent.

    Raises SourceError if the plan asks for the agent and it does not answer or holds no key.
    """
    if means.agent_path is None:
        return ()
    try:
        agent = await asyncssh.connect_agent(means.agent_path)
        stack.callback(agent.close)
        keys: Sequence[asyncssh.SSHKeyPair] = await agent.get_keys()
    except (OSError, ValueError):
        keys = ()
    if not keys and login.agent:
        raise SourceError(f"the SSH agent for {login.host} has no key or does not answer: add the key with ssh-add")
    return keys


def _agent(login: Login) -> str | None:
    path = os.environ.get("SSH_AUTH_SOCK", "")
    there = bool(path) and Path(path).is_socket()
    if login.agent and not there:
        why = f"its socket {path} does not exist" if path else "SSH_AUTH_SOCK is not set"
        raise SourceError(
            f"the SSH agent for {login.host} cannot be used: {why}; start it and add the key with ssh-add"
        )
    implicit = login.key is None and login.password is None
    return path if there and (login.agent or implicit) else None


def _load(login: Login, where: str) -> Sequence[asyncssh.SSHKeyPair]:
    passphrase = None if login.passphrase is None else secret(login.passphrase).reveal()
    try:
        if where.startswith("env:"):
            data = secret(where).reveal().encode()
            return asyncssh.load_keypairs([asyncssh.import_private_key(data, passphrase)])
        path = Path(where.removeprefix("file:")).expanduser()
        if path.stat().st_size > _MAX_KEY_BYTES:
            raise PlanError(f"the key {where} is larger than any key: give the private key's file")
        return asyncssh.load_keypairs(str(path), passphrase)
    except FileNotFoundError:
        raise PlanError(f"the key {where} does not exist: give the private key's file") from None
    except OSError as error:
        raise PlanError(f"the key {where} cannot be read: {(error.strerror or 'unknown').lower()}") from None
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        if passphrase is None and _wants_passphrase(error):
            raise PlanError(f"the key {where} needs a passphrase: give passphrase: env:NAME or file:PATH") from None
        if passphrase is not None and find_spec("bcrypt") is None and "OPENSSH" in _begin(where):
            text = f"the key {where} needs the Python package bcrypt for its passphrase"
            raise PlanError(f"{text}: install it, or ssh-add the key and write agent: true") from None
        if passphrase is not None:
            text = f"the key {where} cannot be opened with the passphrase {login.passphrase}"
            raise PlanError(f"{text}: check both") from None
        raise PlanError(f"the key {where} is not a usable private key: make one with ssh-keygen") from None


def _begin(where: str) -> str:
    if where.startswith("env:"):
        return secret(where).reveal()[:40]
    with Path(where.removeprefix("file:")).expanduser().open(encoding="utf-8", errors="replace") as file:
        return file.read(40)


def _wants_passphrase(error: Exception) -> bool:
    return isinstance(error, asyncssh.KeyEncryptionError) or "passphrase" in str(error).lower()


def _own_keys() -> tuple[Sequence[asyncssh.SSHKeyPair], list[str]]:
    """The user's keys of ~/.ssh that need no passphrase."""
    keys: list[asyncssh.SSHKeyPair] = []
    names = []
    for name in _OWN:
        path = Path("~/.ssh", name).expanduser()
        try:
            keys += asyncssh.load_keypairs(str(path))
        except (OSError, ValueError):
            continue
        names.append(f"key {path}")
    return keys, names
