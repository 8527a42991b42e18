"""How a plan says where a device's SSH server is, who logs in, and how its host key is verified."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from soakwatch.core.secrets import SecretRef
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import HostName

_HOP = re.compile(r"(?:(?P<user>[^@:\s]+)@)?(?P<host>\[[0-9a-fA-F:.%\w]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")


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
        BeforeValidator(hops),
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
