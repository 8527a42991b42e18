"""pysnmp's engines: one a process (and user), shared by all targets, ended with the last of them.

An engine costs 90 ms of CPU and 1.3 MB, so targets share it. Two targets of one user name and different keys cannot
share one (pysnmp keeps users by name), nor can a target whose engine ID has changed (pysnmp keeps it by address).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from pysnmp.entity import config
from pysnmp.hlapi.v3arch.asyncio import SnmpEngine
from pysnmp.proto.secmod.rfc3414.service import SnmpUSMSecurityModel

from soakwatch.sources.transport.snmp.snmp_access import Access

AUTH = {
    "MD5": config.USM_AUTH_HMAC96_MD5,
    "SHA": config.USM_AUTH_HMAC96_SHA,
    "SHA-224": config.USM_AUTH_HMAC128_SHA224,
    "SHA-256": config.USM_AUTH_HMAC192_SHA256,
    "SHA-384": config.USM_AUTH_HMAC256_SHA384,
    "SHA-512": config.USM_AUTH_HMAC384_SHA512,
}
PRIV = {
    "DES": config.USM_PRIV_CBC56_DES,
    "AES": config.USM_PRIV_CFB128_AES,
    "AES-192": config.USM_PRIV_CFB192_AES_BLUMENTHAL,
    "AES-256": config.USM_PRIV_CFB256_AES_BLUMENTHAL,
    "AES-192-C": config.USM_PRIV_CFB192_AES,
    "AES-256-C": config.USM_PRIV_CFB256_AES,
}
"""pysnmp's names of the algorithms of a plan (``AuthName``, ``PrivName``)."""
_PRIVATE = "_SnmpUSMSecurityModel__"


@dataclass(slots=True)
class Engines:
    """The engines of one event loop, each with the number of its users."""

    shared: dict[Hashable, tuple[SnmpEngine, int]] = field(default_factory=dict)

    def take(self, key: Hashable) -> SnmpEngine:
        """An engine; ``give_back`` the key when done."""
        engine, users = self.shared.get(key) or (_engine(), 0)
        self.shared[key] = (engine, users + 1)
        return engine

    def give_back(self, key: Hashable) -> None:
        """One user less; the last one ends the engine."""
        engine, users = self.shared.pop(key)
        if users > 1:
            self.shared[key] = (engine, users - 1)
        else:
            engine.close_dispatcher()


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Engines] = WeakKeyDictionary()
"""Sockets cannot go from one loop to another."""


def engines() -> Engines:
    """The engines of this process and loop."""
    return _OF_LOOPS.setdefault(asyncio.get_running_loop(), Engines())


def key_of(access: Access, engine_id: bytes | None) -> Hashable:
    """Targets with the same key can share an engine; ``engine_id`` is given once it was seen to change."""
    if access.version != "3":
        return ("community",)
    keys = hashlib.sha256("\0".join((access.auth, access.priv)).encode()).digest()
    own = (access.where, engine_id) if engine_id is not None else ()
    return (access.user, access.auth_protocol, access.priv_protocol, keys, *own)


def _engine() -> SnmpEngine:
    """An engine without pysnmp's defect of the time window.

    pysnmp forgets what it knows of a peer's clock 300 s after each answer, even if there were later ones: from then
    on every request is refused once and sent again. Here the clock is kept; only the list of what was due is emptied.
    """
    engine = SnmpEngine()
    for model in vars(engine).get("security_models", {}).values():
        if isinstance(model, SnmpUSMSecurityModel):
            setattr(model, f"{_PRIVATE}expire_timeline_info", partial(_expire, model))
    dispatcher = engine.message_dispatcher
    dispatcher.receive_message = partial(_receive_safely, dispatcher.receive_message)
    return engine


def _receive_safely(receive: Callable[..., object], *given: object) -> object:
    """Lets datagrams in; those that break the decoder (it raises whatever it likes) are dropped like all others."""
    with contextlib.suppress(Exception):
        return receive(*given)
    return b""


def _expire(model: SnmpUSMSecurityModel) -> None:
    """Counts the ticks on and drops what was due, without forgetting the peers' clocks."""
    tick: int = getattr(model, f"{_PRIVATE}expirationTimer")
    due: dict[int, object] = getattr(model, f"{_PRIVATE}timelineExpQueue")
    due.pop(tick, None)
    setattr(model, f"{_PRIVATE}expirationTimer", tick + 1)
