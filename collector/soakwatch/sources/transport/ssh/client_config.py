"""What the SSH client's own configuration (``~/.ssh/config``) says of a device, where a plan asks for it.

OpenSSH itself reads it (``ssh -G HOST``), with its Host, Match and Include; it connects to nothing. Taken from it are
HostName, Port, User, the first IdentityFile that exists, ProxyJump and UserKnownHostsFile. What a plan says itself
wins, and host keys are verified as without it. ProxyCommand, HostKeyAlias and certificates are not taken.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.ssh.access import Access, Login, hop

_TIMEOUT_S = 10.0
_USUAL_KEYS = frozenset({"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa"})
_NONE = {"", "none"}

Settings = Mapping[str, Sequence[str]]


def with_client_config(access: Access) -> Access:
    """The device with what the client's configuration says of it; the same where the plan does not ask for it.

    Blocks while ssh reads its files. Raises PlanError where it refuses them, or there is no ssh.
    """
    if not access.ssh_config:
        return access
    settings = _settings(access.host, access.ssh_config)
    known = {**_login(access, settings)}
    if not access.jump and (jumps := _first(settings, "proxyjump")):
        known["jump"] = tuple(_jump(text, access.ssh_config) for text in jumps.split(","))
    files = _first(settings, "userknownhostsfile").split()
    if access.known_hosts is None and files and files != _usual_known_hosts():
        known["known_hosts"] = files[0]
    return access.model_copy(update=known)


def _login(given: Login, settings: Settings) -> dict[str, object]:
    known: dict[str, object] = {"host": _first(settings, "hostname") or given.host}
    if "port" not in given.model_fields_set:
        known["port"] = int(_first(settings, "port") or given.port)
    if given.user is None and (user := _first(settings, "user")):
        known["user"] = user
    if given.key is None and given.password is None and not given.agent:
        named = [Path(text).expanduser() for text in settings.get("identityfile", ())]
        own = [file for file in named if file.name not in _USUAL_KEYS or file.parent != Path.home() / ".ssh"]
        if key := next((file for file in own if file.is_file()), None):
            known["key"] = str(key)
    return known


def _jump(text: str, config: bool | str) -> Login:  # noqa: FBT001
    """One host of ProxyJump, which may have an entry of its own."""
    try:
        login = Login.model_validate(hop(text.removeprefix("ssh://")))
    except (ValueError, ValidationError):
        remedy = "is not user@host:port: write jump in the plan"
        raise PlanError(f"ProxyJump {text!r} of the SSH configuration {remedy}") from None
    return login.model_copy(update=_login(login, _settings(login.host, config)))


def _settings(host: str, config: bool | str) -> Settings:  # noqa: FBT001
    file = [] if config is True else ["-F", str(Path(str(config)).expanduser())]
    try:
        done = subprocess.run(
            ["ssh", "-G", *file, "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        remedy = "install openssh-client, or write host, user and key"
        raise PlanError(f"ssh_config needs the SSH client: {remedy}") from None
    except subprocess.TimeoutExpired:
        why = f"took longer than {_TIMEOUT_S:g} s: look at its Match exec"
        raise PlanError(f"ssh_config: ssh -G {host} {why}") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise PlanError(f"ssh_config: ssh refuses its configuration for {host}: {said[:200]}")
    settings: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key.lower(), []).append(value.strip())
    return settings


def _first(settings: Settings, key: str) -> str:
    value = next(iter(settings.get(key, ())), "")
    return "" if value.lower() in _NONE else value


def _usual_known_hosts() -> list[str]:
    folder = Path.home() / ".ssh"
    return [str(folder / "known_hosts"), str(folder / "known_hosts2")]
