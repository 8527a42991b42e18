"""The answers of an agent: GET, GETNEXT and GETBULK by RFC 3416 section 4.2, for SNMPv1 by RFC 1157 and RFC 3584."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch_testing.snmp_ber import GET, GET_BULK, V1, Ask, Reply, write_binding
from soakwatch_testing.snmp_cells import COUNTER64, END_OF_VIEW, NO_SUCH_INSTANCE, NO_SUCH_OBJECT, NULL, Name
from soakwatch_testing.snmp_faults import NO_FAULTS, Mischief, lies_below
from soakwatch_testing.snmp_mib import Mib

TOO_BIG, NO_SUCH_NAME, GEN_ERR = 1, 2, 5
_MAX_BINDINGS = 2000
_ENVELOPE = 80  # octets besides the bindings: headers of v3, community
MAX_ANSWER_BYTES = 65_000  # octets of an answer, a UDP datagram's limit
_CALM = Mischief(NO_FAULTS)


@dataclass(frozen=True, slots=True)
class EncodedAnswer:
    """An answer with encoded bindings and their names; ``shift`` is added to the request's number."""

    status: int
    index: int
    bindings: tuple[bytes, ...]
    names: tuple[Name, ...]
    shift: int = 0


def answer(
    mib: Mib, ask: Ask, version: int, seconds: float, mischief: Mischief | None = None, largest: int = MAX_ANSWER_BYTES
) -> EncodedAnswer:
    """The answer to a request, ``seconds`` after boot; ``largest`` is the maximum size in octets."""
    faults = mischief or _CALM
    for position, name in enumerate(ask.names, 1):
        if lies_below(name, faults.gen_err):
            return _refusal(ask, GEN_ERR, position)
    if ask.kind == GET_BULK:
        return _bulk(mib, ask, seconds, faults, largest)
    answered: list[Name] = []
    bindings: list[bytes] = []
    for position, name in enumerate(ask.names, 1):
        if ask.kind == GET:
            cell = mib.get(name)
            there = None if cell is None or (version == V1 and cell.tag == COUNTER64) else name
            missing = NO_SUCH_INSTANCE if there is None and mib.has_object(name) else NO_SUCH_OBJECT
        else:
            there = _next(mib, name, faults, without=COUNTER64 if version == V1 else None)
            missing = END_OF_VIEW
        if there is None and version == V1:
            return _refusal(ask, NO_SUCH_NAME, position)
        answered.append(name if there is None else there)
        bindings.append(write_binding(name, missing, None) if there is None else mib.binding(there, seconds))
    if not _fits(bindings, _Room(faults, largest)):
        return _refusal(ask, TOO_BIG, 0) if version == V1 else EncodedAnswer(TOO_BIG, 0, (), ())
    return EncodedAnswer(0, 0, tuple(bindings), tuple(answered))


def reply_of(encoded: EncodedAnswer) -> Reply:
    """The answer without bindings, for the envelope."""
    return Reply(encoded.status, encoded.index, ())


def _refusal(ask: Ask, status: int, index: int) -> EncodedAnswer:
    return EncodedAnswer(status, index, tuple(write_binding(name, NULL, None) for name in ask.names), ask.names)


def _next(mib: Mib, name: Name, faults: Mischief, *, without: int | None = None) -> Name | None:
    there = mib.after(name, without=without)
    if there is None:
        return None
    if lies_below(there, faults.loop) and mib.get(name) is not None:
        return name
    if lies_below(there, faults.backwards) and mib.get(name) is not None:
        return mib.after((0, 0))
    return there


def _bulk(mib: Mib, ask: Ask, seconds: float, faults: Mischief, largest: int) -> EncodedAnswer:
    singles = max(0, min(ask.first, len(ask.names)))
    answered: list[Name] = []
    bindings: list[bytes] = []
    room = _Room(faults, largest)
    ended: list[bool] = []

    def put(name: Name) -> Name | None:
        there = _next(mib, name, faults)
        octets = write_binding(name, END_OF_VIEW, None) if there is None else mib.binding(there, seconds)
        if not room.takes(octets):
            return None
        bindings.append(octets)
        answered.append(name if there is None else there)
        ended.append(there is None)
        return answered[-1]

    for name in ask.names[:singles]:
        if put(name) is None:
            return EncodedAnswer(0, 0, tuple(bindings), tuple(answered))
    turn = list(ask.names[singles:])
    for _ in range(max(0, ask.second)):
        ended.clear()
        for index, name in enumerate(turn):
            following = put(name)
            if following is None:
                return (
                    EncodedAnswer(0, 0, tuple(bindings), tuple(answered))
                    if bindings
                    else EncodedAnswer(TOO_BIG, 0, (), ())
                )
            turn[index] = following
        if not turn or all(ended):
            break
    return EncodedAnswer(0, 0, tuple(bindings), tuple(answered))


class _Room:
    """What still fits into an answer."""

    def __init__(self, faults: Mischief, largest: int) -> None:
        self._bindings = min(_MAX_BINDINGS, faults.faults.most_bindings or _MAX_BINDINGS)
        self._octets = min(largest, faults.faults.most_octets or largest) - _ENVELOPE

    def takes(self, octets: bytes) -> bool:
        self._bindings -= 1
        self._octets -= len(octets)
        return self._bindings >= 0 and self._octets >= 0


def _fits(bindings: list[bytes], room: _Room) -> bool:
    return all(room.takes(octets) for octets in bindings)
