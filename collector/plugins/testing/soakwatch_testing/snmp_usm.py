"""SNMPv3 for the responder: pysnmp's message processing and user-based security (RFC 3412, RFC 3414).

With an engine ID, pysnmp stores an engine's boots in a folder; here both are set explicitly, so nothing is left behind.
Creating an engine takes about 90 ms of CPU.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyasn1.codec.ber import decoder
from pyasn1.error import PyAsn1Error
from pysnmp.carrier.asyncio.dgram.udp import UdpTransportAddress
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.proto import error, rfc1905
from pysnmp.proto.api import v2c

from soakwatch_testing.snmp_answer import EncodedAnswer
from soakwatch_testing.snmp_ber import GET, GET_BULK, GET_NEXT, Ask, wrap

Address = tuple[str, int]
_UDP = (1, 3, 6, 1, 6, 1, 1)
_KINDS = {
    rfc1905.GetRequestPDU.tagSet: GET,
    rfc1905.GetNextRequestPDU.tagSet: GET_NEXT,
    rfc1905.GetBulkRequestPDU.tagSet: GET_BULK,
}
AUTH = {
    "": config.USM_AUTH_NONE,
    "MD5": config.USM_AUTH_HMAC96_MD5,
    "SHA": config.USM_AUTH_HMAC96_SHA,
    "SHA224": config.USM_AUTH_HMAC128_SHA224,
    "SHA256": config.USM_AUTH_HMAC192_SHA256,
    "SHA384": config.USM_AUTH_HMAC256_SHA384,
    "SHA512": config.USM_AUTH_HMAC384_SHA512,
}
PRIV = {
    "": config.USM_PRIV_NONE,
    "DES": config.USM_PRIV_CBC56_DES,
    "AES": config.USM_PRIV_CFB128_AES,
    "AES192": config.USM_PRIV_CFB192_AES_BLUMENTHAL,
    "AES256": config.USM_PRIV_CFB256_AES_BLUMENTHAL,
    "AES192C": config.USM_PRIV_CFB192_AES,
    "AES256C": config.USM_PRIV_CFB256_AES,
}


@dataclass(frozen=True, slots=True)
class User:
    """An SNMPv3 user with passphrases; "" is no protocol. The keys are test data."""

    name: str
    auth: str = ""
    auth_key: str = ""
    priv: str = ""
    priv_key: str = ""


# Answers a request; arguments: context, request, maximum size of the answer in octets.
Speaker = Callable[[str, Ask, int], EncodedAnswer | None]


class _Post:
    """A stand-in for pysnmp's transports: collects in ``sent``, with time controlled by the test."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self._ticks = 0
        self._tick: Callable[[float], None] | None = None

    def register_recv_callback(self, recvCb: object, recvId: object = None) -> None:  # noqa: N803
        """Ignored: incoming messages are handed to the engine directly."""

    def register_timer_callback(self, timerCbFun: Callable[[float], None]) -> None:  # noqa: N803
        self._tick = timerCbFun

    def get_timer_ticks(self) -> int:
        return self._ticks

    def get_timer_resolution(self) -> float:
        return 1.0

    def tick(self, seconds: float) -> None:
        """Let seconds pass: pysnmp discards the state kept for answers."""
        if int(seconds) > self._ticks and self._tick is not None:
            self._ticks = int(seconds)
            self._tick(time.time())

    def send_message(self, outgoingMessage: bytes, transportDomain: object, transportAddress: object) -> None:  # noqa: N803, ARG002
        self.sent.append(bytes(outgoingMessage))


class Security:
    """One SNMPv3 engine with its users."""

    def __init__(self, users: tuple[User, ...], engine_id: bytes, boots: int, speaker: Speaker) -> None:
        self._speaker = speaker
        self._post = _Post()
        self._began = time.monotonic()
        self._engine = SnmpEngine()
        builder = self._engine.get_mib_builder()
        own_id, self._boots, self._time = builder.import_symbols(
            "__SNMP-FRAMEWORK-MIB", "snmpEngineID", "snmpEngineBoots", "snmpEngineTime"
        )
        own_id.syntax = own_id.syntax.clone(engine_id)
        self._engine.snmpEngineID = own_id.syntax
        self._engine.register_transport_dispatcher(self._post)
        for user in users:
            config.add_v3_user(
                self._engine,
                user.name,
                AUTH[user.auth],
                user.auth_key or None,
                PRIV[user.priv],
                user.priv_key or None,
            )
        self._engine.message_dispatcher.register_context_engine_id(own_id.syntax, tuple(_KINDS), self._process)
        self.begin(boots, 0.0)

    def begin(self, boots: int, seconds: float) -> None:
        """Set snmpEngineBoots, and snmpEngineTime in seconds."""
        self._boots.syntax = self._boots.syntax.clone(boots)
        self._time.syntax = self._time.syntax.clone(int(time.time() - seconds))

    def boots(self) -> int:
        """snmpEngineBoots."""
        return int(self._boots.syntax)

    def seconds(self) -> int:
        """snmpEngineTime."""
        return int(time.time()) - int(self._time.syntax)

    def receive(self, datagram: bytes, sender: Address) -> list[bytes]:
        """The answers to a datagram: a response, a report, or none."""
        self._post.sent = []
        self._post.tick(time.monotonic() - self._began)
        with contextlib.suppress(ArithmeticError, LookupError, ValueError, PyAsn1Error):  # pysnmp's way with garbage
            self._engine.message_dispatcher.receive_message(self._engine, _UDP, UdpTransportAddress(sender), datagram)
        return self._post.sent

    def close(self) -> None:
        self._engine.transport_dispatcher = None

    def _process(  # pysnmp passes thirteen untyped arguments
        self,
        engine: Any,
        processing: Any,
        security: Any,
        user: Any,
        level: Any,
        context_engine: Any,
        context: Any,
        pdu_version: Any,
        pdu: Any,
        largest: Any,
        reference: Any,
    ) -> None:
        kind = _KINDS[pdu.tagSet]
        first = second = 0
        if kind == GET_BULK:
            first, second = int(v2c.apiBulkPDU.get_non_repeaters(pdu)), int(v2c.apiBulkPDU.get_max_repetitions(pdu))
        names = tuple(tuple(name) for name, _ in v2c.apiPDU.get_varbinds(pdu))
        encoded = self._speaker(
            bytes(context).decode("utf-8", "replace"), Ask(kind, 0, first, second, names), int(largest)
        )
        if encoded is None:
            return
        response = v2c.apiPDU.get_response(pdu)
        bindings, _ = decoder.decode(wrap(0x30, b"".join(encoded.bindings)), asn1Spec=rfc1905.VarBindList())
        response.setComponentByPosition(3, bindings, verifyConstraints=False)
        if encoded.shift:
            v2c.apiPDU.set_request_id(response, (int(v2c.apiPDU.get_request_id(pdu)) + encoded.shift) % 2**31)
        response.setComponentByPosition(1, encoded.status)
        response.setComponentByPosition(2, encoded.index)
        try:
            engine.message_dispatcher.return_response_pdu(
                engine,
                processing,
                security,
                user,
                level,
                context_engine,
                context,
                pdu_version,
                response,
                largest,
                reference,
                {},
            )
        except error.StatusInformation:
            return  # too large: pysnmp counts a silent drop
