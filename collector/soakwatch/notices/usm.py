"""SNMPv3 notifications: pysnmp authenticates, decrypts and acknowledges what the desk hands it.

A trap of v3 is signed with a key of its sender's engine, so the plan must name that engine's ID for each user; an
inform is signed for ours, which the sender asks for. Reference: RFC 3414, RFC 3412 section 7.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from pyasn1.error import PyAsn1Error
from pyasn1.type import univ
from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.entity.rfc3413.ntfrcv import NotificationReceiver
from pysnmp.error import PySnmpError
from pysnmp.proto import rfc1902

from soakwatch.errors import PlanError
from soakwatch.notices.notification import Notification, Value, of_binds
from soakwatch.snmp.ber import Malformed
from soakwatch.snmp.engines import engines

_AUTH = {
    "MD5": config.USM_AUTH_HMAC96_MD5,
    "SHA": config.USM_AUTH_HMAC96_SHA,
    "SHA-224": config.USM_AUTH_HMAC128_SHA224,
    "SHA-256": config.USM_AUTH_HMAC192_SHA256,
    "SHA-384": config.USM_AUTH_HMAC256_SHA384,
    "SHA-512": config.USM_AUTH_HMAC384_SHA512,
}
_PRIV = {
    "DES": config.USM_PRIV_CBC56_DES,
    "AES": config.USM_PRIV_CFB128_AES,
    "AES-192": config.USM_PRIV_CFB192_AES_BLUMENTHAL,
    "AES-256": config.USM_PRIV_CFB256_AES_BLUMENTHAL,
    "AES-192-C": config.USM_PRIV_CFB192_AES,
    "AES-256-C": config.USM_PRIV_CFB256_AES,
}
_REFUSALS = ("usmStatsUnknownUserNames", "usmStatsWrongDigests", "usmStatsDecryptionErrors",
             "usmStatsUnsupportedSecLevels", "usmStatsNotInTimeWindows")  # fmt: skip

Send = Callable[[bytes, str, int], None]


@dataclass(frozen=True, slots=True)
class User:
    """A user whose notifications are taken; ``engine_id`` is that of a sender of traps, None for informs."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: str = "SHA"
    priv: str = field(default="", repr=False)
    priv_protocol: str = "AES"
    engine_id: bytes | None = None


class _Outlet(udp.UdpTransport):  # type: ignore[misc] # pysnmp publishes no types
    """A transport that has no socket of its own: it is fed, and what pysnmp answers goes to ``send``."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def send_message(self, outgoing: object, address: tuple[str, int]) -> None:
        """An acknowledgement or a report."""
        self._send(bytes(outgoing), str(address[0]), int(address[1]))  # type: ignore[call-overload]


class Receiver3:
    """Reads v3 datagrams one at a time; made by ``open_receiver3``."""

    def __init__(self, engine: SnmpEngine, users: Sequence[User]) -> None:
        self._engine = engine
        self._heard: list[tuple[str, Value]] | None = None
        for user in users:
            _admit(engine, user)
        self._receiver = NotificationReceiver(engine, self._take)
        (self._unknown_engines, *self._stats) = engine.get_mib_builder().import_symbols(
            "__SNMP-USER-BASED-SM-MIB", "usmStatsUnknownEngineIDs", *_REFUSALS
        )

    def read(self, data: bytes, address: str, port: int, *, asks: bool) -> Notification | str | None:
        """The notification; ``refused`` or ``garbled`` if it is none of a known user; None for a mere question.

        ``asks`` says that the datagram names no engine: that is how a sender of informs asks for ours.
        """
        self._heard = None
        refused = sum(int(stat.syntax) for stat in self._stats)
        strange = int(self._unknown_engines.syntax)
        try:
            sender = udp.UdpTransportAddress((address, port))
            self._engine.message_dispatcher.receive_message(self._engine, udp.DOMAIN_NAME, sender, data)
        except (PySnmpError, PyAsn1Error):
            if self._heard is None:
                return "garbled"
        if self._heard is not None:
            return of_binds("3", self._heard)
        if asks:
            return None
        if sum(int(stat.syntax) for stat in self._stats) > refused or int(self._unknown_engines.syntax) > strange:
            return "refused"
        return "garbled"

    def close(self) -> None:
        """Hear nothing more."""
        self._receiver.close(self._engine)

    def _take(self, *told: Sequence[tuple[object, object]]) -> None:
        """pysnmp calls this with engine, state, context engine, context, varbinds and what was given to it."""
        self._heard = [(str(oid), _value(value)) for oid, value in told[4]]


def open_receiver3(target: str, place: Hashable, users: Sequence[User], send: Send, stack: AsyncExitStack) -> Receiver3:
    """An engine that knows these users; the caller's stack ends it. Raises PlanError for keys that cannot be."""
    key = ("notifications", target, place)
    engine = engines().take(key)
    stack.callback(engines().give_back, key)
    config.add_transport(engine, udp.DOMAIN_NAME, _Outlet(send))
    try:
        receiver = Receiver3(engine, users)
    except PySnmpError as error:
        raise PlanError(
            f"{target}: a user of SNMPv3 cannot be set up ({type(error).__name__}): check its protocols and engine_id"
        ) from None
    stack.callback(receiver.close)
    return receiver


def _admit(engine: SnmpEngine, user: User) -> None:
    config.add_v3_user(
        engine,
        user.name,
        _AUTH[user.auth_protocol] if user.auth else config.USM_AUTH_NONE,
        user.auth or None,
        _PRIV[user.priv_protocol] if user.priv else config.USM_PRIV_NONE,
        user.priv or None,
        securityEngineId=None if user.engine_id is None else rfc1902.OctetString(user.engine_id),
    )


def _value(value: object) -> Value:
    if isinstance(value, univ.ObjectIdentifier):
        return str(value)
    if isinstance(value, rfc1902.IpAddress):
        return ".".join(str(byte) for byte in bytes(value))
    if isinstance(value, univ.OctetString):
        return bytes(value)
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, PyAsn1Error):
        raise Malformed("a value of no known kind") from None
