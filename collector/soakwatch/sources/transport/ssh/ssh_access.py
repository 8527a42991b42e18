"""How a plan says where a device's SSH server is, who logs in, and how its host key is verified; what it leaves open
may be taken from the SSH client's own configuration (``~/.ssh/config``)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import HostName

_SSH_G_TIMEOUT_S = 10.0
_USUAL_KEYS = frozenset({"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa"})
_NONE = {"", "none"}

_HOP = re.compile(r"(?:(?P<user>[^@:\s]+)@)?(?P<host>\[[0-9a-fA-F:.%\w]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")

_ClientSettings = Mapping[str, Sequence[str]]


def fingerprint(value: object) -> str:
    """A pinned host key as ``ssh-keygen -l`` shows it, less padding. Raises ValueError with the form that is meant.

    >>> fingerprint("SHA256:" + "A" * 43 + "=")[-3:]
    'AAA'
    """
    if not isinstance(value, str) or _FINGERPRINT.fullmatch(value) is None:
        raise ValueError("a pinned host key is SHA256:... with 43 characters, as 'ssh-keygen -lf' shows it")
    return value.rstrip("=")


HostKey = Annotated[
    str,
    BeforeValidator(fingerprint),
    WithJsonSchema({"type": "string", "pattern": "^SHA256:[A-Za-z0-9+/]{43}=?$"}),
]


class Login(BaseModel):
    """One SSH server: where it is, how to log in, which host key it must have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[HostName, Field(description="name or address")]
    port: Annotated[int, Field(default=22, ge=1, le=65535, description="TCP port")]
    user: Annotated[
        str | None,
        Field(default=None, min_length=1, description="account on the device; default: that of the user who runs this"),
    ]
    key: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            description="private key: a path, or env:NAME for a key in a variable; "
            "default: the keys of ~/.ssh and the SSH agent, unless a password is given",
        ),
    ]
    passphrase: Annotated[SecretRef | None, Field(default=None, description="passphrase of the private key")]
    password: Annotated[SecretRef | None, Field(default=None, description="password of the account")]
    agent: Annotated[bool, Field(default=False, description="use the keys of the SSH agent (SSH_AUTH_SOCK)")]
    host_key: Annotated[
        HostKey | None,
        Field(default=None, description="the only accepted host key: SHA256:... (then known_hosts is not read)"),
    ]


def hop(value: object) -> object:
    """A jump host as people write it, ``user@host:port``, as the keys of a Login; anything else as it is.

    >>> hop("ops@gate:2222")
    {'host': 'gate', 'user': 'ops', 'port': 2222}
    """
    if not isinstance(value, str):
        return value
    match = _HOP.fullmatch(value.strip())
    if match is None:
        raise ValueError("a jump host is user@host or user@host:port; one with a password is the keys of a login")
    reported: dict[str, object] = {"host": match["host"].strip("[]")}
    if match["user"]:
        reported["user"] = match["user"]
    if match["port"]:
        reported["port"] = int(match["port"])
    return reported


def hops(value: object) -> tuple[object, ...]:
    """One jump host or a list of them; a tuple, because a plan is read strictly."""
    several = value if isinstance(value, list | tuple) else (value,)
    return tuple(hop(each) for each in several)


_Hop = Annotated[str, Field(min_length=1)] | Login


class Access(Login):
    """A device over SSH: its login, how host keys are verified, the way there, and how a dead line is noticed."""

    known_hosts: Annotated[
        str | None,
        Field(default=None, min_length=1, description="file with trusted host keys; default: ~/.ssh/known_hosts"),
    ]
    trust: Annotated[
        Literal["known", "first_use"],
        Field(
            default="known",
            description="first_use: a host that is in no known_hosts is trusted once, its key is kept with the run "
            "and noted in the record",
        ),
    ]
    jump: Annotated[
        tuple[Login, ...],
        BeforeValidator(hops, json_schema_input_type=_Hop | list[_Hop]),
        Field(default=(), max_length=4, description="jump hosts, in order: user@host:port, or the keys of a login"),
    ]
    ssh_config: Annotated[
        bool | Annotated[str, Field(min_length=1)],
        Field(
            default=False,
            description="true: host is a name of ~/.ssh/config, which gives address, port, user, key and jump hosts; "
            "or another file",
        ),
    ]
    keepalive: Annotated[
        Seconds,
        Field(
            default=5.0,
            ge=1,
            le=3600,
            description="a silent connection is probed after this; three probes without an answer end it",
        ),
    ]
    connect_timeout: Annotated[
        Seconds, Field(default=10.0, gt=0, le=120, description="longest time for a connection and login")
    ]

    @model_validator(mode="after")
    def _pinned_or_known(self) -> Access:
        if self.host_key is not None and self.trust == "first_use":
            raise ValueError("host_key pins one key, but trust: first_use accepts any new one: keep one of them")
        return self


def with_client_config(access: Access) -> Access:
    """The device with what the client's configuration says of it; the same where the plan does not ask for it.

    OpenSSH itself reads its files (``ssh -G HOST``), with Host, Match and Include; it connects to nothing. Taken are
    HostName, Port, User, the first IdentityFile that exists, ProxyJump and UserKnownHostsFile. What a plan says itself
    wins, and host keys are verified as without it. ProxyCommand, HostKeyAlias and certificates are not taken.

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


def _login(given: Login, settings: _ClientSettings) -> dict[str, object]:
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


def _settings(host: str, config: bool | str) -> _ClientSettings:  # noqa: FBT001
    file = [] if config is True else ["-F", str(Path(str(config)).expanduser())]
    try:
        done = subprocess.run(
            ["ssh", "-G", *file, "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SSH_G_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        remedy = "install openssh-client, or write host, user and key"
        raise PlanError(f"ssh_config needs the SSH client: {remedy}") from None
    except subprocess.TimeoutExpired:
        why = f"took longer than {_SSH_G_TIMEOUT_S:g} s: look at its Match exec"
        raise PlanError(f"ssh_config: ssh -G {host} {why}") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise PlanError(f"ssh_config: ssh refuses its configuration for {host}: {said[:200]}")
    settings: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key.lower(), []).append(value.strip())
    return settings


def _first(settings: _ClientSettings, key: str) -> str:
    value = next(iter(settings.get(key, ())), "")
    return "" if value.lower() in _NONE else value


def _usual_known_hosts() -> list[str]:
    folder = Path.home() / ".ssh"
    return [str(folder / "known_hosts"), str(folder / "known_hosts2")]
