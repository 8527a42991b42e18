"""SNMPv3 notifications: pysnmp authenticates, decrypts and acknowledges them.

A v3 trap is signed with its sender's engine ID, so the plan names that for each user; an inform with ours, which the
sender discovers. References: RFC 3414, RFC 3412 section 7.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from pyasn1.error import PyAsn1Error
from pyasn1.type import univ
from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.entity.rfc3413.ntfrcv import NotificationReceiver
from pysnmp.error import PySnmpError
from pysnmp.proto import rfc1902

from soakwatch.core.errors import PlanError
from soakwatch.sources.receivers.notification import Notification, Value, of_binds
from soakwatch.sources.receivers.user import Key, User
from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.engines import AUTH, PRIV, engines

_REFUSALS = (
    "usmStatsUnknownUserNames",
    "usmStatsWrongDigests",
    "usmStatsDecryptionErrors",
    "usmStatsUnsupportedSecLevels",
    "usmStatsNotInTimeWindows",
)

Send = Callable[[bytes, str, int], None]


class _Outlet(udp.UdpTransport):  # type: ignore[misc] # pysnmp publishes no types
    """A transport without socket: datagrams are passed in, and pysnmp's answers go to ``send``."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def send_message(self, outgoing: object, address: tuple[str, int]) -> None:
        """Sends an acknowledgement or a report."""
        self._send(bytes(outgoing), str(address[0]), int(address[1]))  # type: ignore[call-overload]


class Receiver3:
    """Reads v3 datagrams one at a time for all sources at an address; opens with the first and closes with the last.

    One engine has the users of all sources, since informs are signed for it; each source gets only its own.
    """

    def __init__(self, send: Send) -> None:
        self._key: Hashable = ("notifications", id(self))
        self._engines = engines()
        self._engine = self._engines.take(self._key)
        config.add_transport(self._engine, udp.DOMAIN_NAME, _Outlet(send))
        self._heard: list[tuple[str, Value]] | None = None
        self._admitted: dict[Key, list[tuple[str, User]]] = {}
        self._receiver = NotificationReceiver(self._engine, self._take)
        (self._unknown_engines, *self._stats) = self._engine.get_mib_builder().import_symbols(
            "__SNMP-USER-BASED-SM-MIB", "usmStatsUnknownEngineIDs", *_REFUSALS
        )
        self._own = bytes(self._engine.snmpEngineID)

    def add_users(self, target: str, users: Sequence[User]) -> None:
        """Adds a source's users. Raises PlanError for invalid keys, or if another source contradicts them."""
        for user in users:
            for other, known in self._admitted.get(user.key, ()):
                if known != user:
                    raise PlanError(
                        f"{target}: {other} gives the user {user.name} another password or protocol on "
                        f"the same address: "
                        "give the same ones, the engine_id of each device (traps), or another port with listen:"
                    )
        taken: list[User] = []
        try:
            for user in users:
                if user.key not in self._admitted:
                    _admit(self._engine, user)
                self._admitted.setdefault(user.key, []).append((target, user))
                taken.append(user)
        except PySnmpError as error:
            self._remove(target, taken)
            raise PlanError(
                f"{target}: a user of SNMPv3 cannot be set up ({type(error).__name__}): "
                "check its protocols and engine_id"
            ) from None

    def remove_users(self, target: str, users: Sequence[User]) -> bool:
        """Removes the users; True if none is left and the receiver is closed."""
        self._remove(target, users)
        if self._admitted:
            return False
        self._receiver.close(self._engine)
        self._engines.give_back(self._key)
        return True

    def read(self, data: bytes, address: str, port: int, mine: frozenset[Key]) -> Notification | str | None:
        """The notification; ``refused`` or ``garbled`` if it is none of these users'; None for an engine discovery.

        A sender of informs discovers our engine ID with a datagram that names no engine. Raises MalformedError.
        """
        security = ber.open_sequence(ber.open_sequence(data)[2][1])
        engine, name = security[0][1], security[3][1].decode("utf-8", "replace")
        key = name, None if engine == self._own else engine
        if key in self._admitted and key not in mine:
            return "refused"  # another source's user: not acknowledged here
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
        if not engine:
            return None
        if sum(int(stat.syntax) for stat in self._stats) > refused or int(self._unknown_engines.syntax) > strange:
            return "refused"
        return "garbled"

    def _remove(self, target: str, users: Sequence[User]) -> None:
        for user in users:
            self._admitted[user.key].remove((target, user))
            if not self._admitted[user.key]:
                del self._admitted[user.key]
                config.delete_v3_user(self._engine, user.name, _engine_id(user))

    def _take(self, *arguments: Sequence[tuple[object, object]]) -> None:
        """Called by pysnmp with engine, state, context engine, context, varbinds and the registered argument."""
        self._heard = [(str(oid), _value(value)) for oid, value in arguments[4]]


def _admit(engine: SnmpEngine, user: User) -> None:
    config.add_v3_user(
        engine,
        user.name,
        AUTH[user.auth_protocol] if user.auth else config.USM_AUTH_NONE,
        user.auth or None,
        PRIV[user.priv_protocol] if user.priv else config.USM_PRIV_NONE,
        user.priv or None,
        securityEngineId=_engine_id(user),
    )


def _engine_id(user: User) -> rfc1902.OctetString | None:
    return None if user.engine_id is None else rfc1902.OctetString(user.engine_id)


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
        raise ber.MalformedError("a value of unknown type") from None
