"""SNMP over gufo-snmp, the fast library. Its sockets are driven here, so that no error is lost.

What the library does not do by itself and is done here: inspect each datagram first (error-status, reports, things
that are no SNMP), throw away answers that came after their time, tell a closed port at once, survive its panics.
What it cannot do: contexts, the error-status of encrypted answers, and answers of more than 4080 bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gufo import snmp
from gufo.snmp._fast import GetIter, SnmpV1ClientSocket, SnmpV2cClientSocket, SnmpV3ClientSocket

from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.datagram import PLAIN, inspect
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_connection import Counters, Row, Value, Walk
from soakwatch.sources.transport.snmp.snmp_errors import REPORTS, FailureKind, SnmpPollError, refused

_AUTH: dict[str, type[snmp.BaseAuthKey]] = {
    "MD5": snmp.Md5Key,
    "SHA": snmp.Sha1Key,
    "SHA-224": snmp.Sha224Key,
    "SHA-256": snmp.Sha256Key,
    "SHA-384": snmp.Sha384Key,
    "SHA-512": snmp.Sha512Key,
}
_PRIV: dict[str, type[snmp.BasePrivKey]] = {
    "DES": snmp.DesKey,
    "AES": snmp.Aes128Key,
    "AES-192": snmp.Aes192Key,
    "AES-256": snmp.Aes256Key,
}
_SEEN = 4096  # bytes of a datagram that are looked at; where one is longer, more from then on
_TAKES = 4080  # bytes of an answer that the library has room for (in v3 it tells agents 2048)
_LEARNING = frozenset({FailureKind.ENGINE_ID, FailureKind.TIME_WINDOW})  # reports that a refresh asks for

_REMEMBERED = 16  # answers, of which a copy may come
_BUSY_S = 0.01  # later than this a timer is late because this process had no time
_BURST = 64  # datagrams that are read in one go
_T = TypeVar("_T")

_Socket = SnmpV1ClientSocket | SnmpV2cClientSocket | SnmpV3ClientSocket


@dataclass(slots=True)
class _Waiting(Generic[_T]):
    """One request under way: how its answer is read, and for whom."""

    receive: Callable[[], _T]
    answer: asyncio.Future[_T]
    timer: asyncio.TimerHandle | None = None
    extended: bool = False


class GufoConnection:
    """One socket of gufo-snmp; made by ``open_gufo``."""

    def __init__(self, access: Access, sock: _Socket, counters: Counters) -> None:
        self.where, self._sock, self._counters = access.where, sock, counters
        self.opaque = access.version == "3" and bool(access.priv)  # encrypted answers hide their error-status
        self._loop = asyncio.get_running_loop()
        self._peek = socket.socket(fileno=os.dup(sock.get_fd()))
        self._peek.setblocking(False)  # noqa: FBT003 - the call has no names
        self._head = bytearray(_SEEN)
        self._waiting: _Waiting[Any] | None = None
        self._learning = False
        self._bad = ""
        self._accepted: deque[int] = deque(maxlen=_REMEMBERED)
        self._loop.add_reader(self._peek.fileno(), self._readable)

    @property
    def engine_id(self) -> bytes:
        """The engine ID that was discovered."""
        return self._sock.get_engine_id() if isinstance(self._sock, SnmpV3ClientSocket) else b""

    async def get(self, oids: Sequence[str], timeout_s: float) -> dict[str, Value]:
        """One GET; objects that the agent does not have are absent."""
        wanted = list(oids)
        answer = await self._ask(lambda: self._sock.send_get_many(wanted), self._sock.recv_get_many, timeout_s)
        return {oid: value for oid in wanted if (value := _value(answer.get(oid))) is not None}

    async def more(self, walk: Walk, timeout_s: float) -> list[Row]:
        """The next rows, by one GETBULK, or GETNEXT in v1; gufo-snmp keeps the place and moves it only by an answer."""
        sock, place = self._sock, walk.place or GetIter(walk.oid, walk.repetitions)
        walk.place = place
        if isinstance(sock, SnmpV1ClientSocket):
            pairs = await self._ask(lambda: sock.send_get_next(place), lambda: [_next(sock, place)], timeout_s)
        else:
            pairs = await self._ask(lambda: sock.send_get_bulk(place), lambda: _bulk(sock, place), timeout_s)
        walk.over = not pairs or pairs[-1] is None
        walk.inconclusive = not pairs and self.opaque
        return [(pair[0], value) for pair in pairs if pair is not None and (value := _value(pair[1])) is not None]

    async def refresh(self, timeout_s: float) -> None:
        """Ask for boots and time (v3)."""
        if not isinstance(self._sock, SnmpV3ClientSocket):
            return
        self._learning = True
        try:
            await self._ask(self._sock.send_refresh, self._sock.recv_refresh, timeout_s)
        finally:
            self._learning = False

    async def become(self, access: Access, timeout_s: float) -> None:
        """Ask as this user from now on, once the engine ID is known (v3)."""
        if isinstance(self._sock, SnmpV3ClientSocket):
            user = _user(access)
            self._sock.set_keys(
                user.name, user.get_auth_alg(), user.get_auth_key(), user.get_priv_alg(), user.get_priv_key()
            )
            if access.auth:
                await self.refresh(timeout_s)

    def close(self) -> None:
        """Closes the socket."""
        self._loop.remove_reader(self._peek.fileno())
        self._peek.close()
        self._fail(SnmpPollError(FailureKind.ADDRESS, self.where, detail="the session was closed"))

    async def _ask(self, send: Callable[[], None], receive: Callable[[], _T], timeout_s: float) -> _T:
        """One request and its answer. Raises SnmpPollError."""
        self._counters.requests += 1
        self._bad = ""
        answer: asyncio.Future[_T] = self._loop.create_future()
        try:
            send()
        except BlockingIOError:
            raise SnmpPollError(FailureKind.ADDRESS, self.where, detail="the socket's buffer is full") from None
        except (ConnectionRefusedError, TimeoutError):  # the library has no other word for a refusal from before
            raise SnmpPollError(FailureKind.REFUSED, self.where) from None
        except OSError as error:
            raise self._broken(error) from None
        except snmp.SnmpError:  # it has no more room for a request than for an answer
            raise SnmpPollError(FailureKind.TOO_LARGE, self.where, detail=f"more than {_TAKES:,}") from None
        self._waiting = waiting = _Waiting(receive, answer)
        waiting.timer = self._loop.call_later(timeout_s, self._give_up, waiting, timeout_s)
        try:
            return await answer
        finally:
            waiting.timer.cancel()
            self._waiting = None

    def _give_up(self, waiting: _Waiting[Any], timeout_s: float) -> None:
        self._readable()  # the answer may have come while this process was busy
        answer = waiting.answer
        if answer.done():
            return
        late_s = 0.0 if waiting.timer is None else self._loop.time() - waiting.timer.when()
        if late_s > _BUSY_S and not waiting.extended:  # so may those have been that hand the answer on
            waiting.extended = True
            waiting.timer = self._loop.call_later(min(late_s, timeout_s), self._give_up, waiting, timeout_s)
            return
        self._counters.unanswered += 1
        bad = self._bad
        failed = SnmpPollError(
            FailureKind.MALFORMED if bad else FailureKind.NO_ANSWER, self.where, detail=bad, seconds=timeout_s
        )
        answer.set_exception(failed)

    def _readable(self) -> None:
        """Something came in: what nobody waits for is thrown away, at most a burst at a time."""
        for _ in range(_BURST):
            try:
                size = self._peek.recv_into(self._head, len(self._head), socket.MSG_PEEK | socket.MSG_TRUNC)
                if size > len(self._head):
                    self._head = bytearray(size)
                    continue
            except BlockingIOError:
                return
            except ConnectionRefusedError:
                self._fail(SnmpPollError(FailureKind.REFUSED, self.where))
                return
            except OSError as error:
                self._fail(self._broken(error))
                return
            waiting = self._waiting
            if waiting is None or waiting.answer.done():
                self._unasked(size)
                self._drop()
            elif self._worth_reading(size):
                digest = self._digest(size)
                if self._read(waiting, size):
                    self._accepted.append(digest)
                    return
            else:
                self._drop()

    def _worth_reading(self, size: int) -> bool:
        """Whether the library shall read what came; errors and reports end the waiting here."""
        try:
            seen = inspect(bytes(memoryview(self._head)[:size]))
        except ber.MalformedError as error:
            self._malformed(str(error))
            return False
        if seen == PLAIN:
            return True
        if seen.report:
            kind = REPORTS.get(seen.report)
            if self._learning and (kind is None or kind in _LEARNING):
                return True
            detail = "" if kind else f"the report {seen.report}"
            self._fail(SnmpPollError(kind or FailureKind.STATUS, self.where, detail=detail))
            return False
        self._fail(refused(self.where, seen.status, seen.index))
        return False

    def _read(self, waiting: _Waiting[Any], size: int) -> bool:
        """True if what came, so many bytes, was the answer."""
        try:
            result = waiting.receive()
        except BlockingIOError:
            self._unasked(size)
            return False  # the answer to an older request
        except snmp.SnmpAuthError:
            self._fail(SnmpPollError(FailureKind.TIME_WINDOW, self.where))
        except (snmp.SnmpError, TimeoutError, ValueError, RuntimeError) as error:
            if size <= _TAKES:
                self._malformed(str(error) or type(error).__name__)
                return False
            self._fail(
                SnmpPollError(FailureKind.TOO_LARGE, self.where, detail=f"{size:,}")
            )  # it read but the beginning
        except BaseException as panic:
            if type(panic).__name__ != "PanicException":  # a panic of the library is no Exception
                raise
            self._malformed("it crashes the decoder")
            return False
        else:
            waiting.answer.set_result(result)
        return True

    def _unasked(self, size: int) -> None:
        """An answer came that nobody waits for: after its time, unless it is a copy."""
        self._counters.late += self._digest(size) not in self._accepted

    def _digest(self, size: int) -> int:
        return hash(bytes(memoryview(self._head)[:size]))

    def _malformed(self, why: str) -> None:
        """Something came that cannot be read; the waiting goes on, for the answer may come yet."""
        self._counters.malformed += 1
        self._bad = why

    def _fail(self, failure: SnmpPollError) -> None:
        if self._waiting is not None and not self._waiting.answer.done():
            self._waiting.answer.set_exception(failure)

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            self._peek.recv(1)

    def _broken(self, error: OSError) -> SnmpPollError:
        return SnmpPollError(FailureKind.ADDRESS, self.where, detail=error.strerror or type(error).__name__)


async def open_gufo(access: Access, timeout_s: float, counters: Counters) -> GufoConnection:
    """A connection, with engine ID, boots and time learnt (v3). Raises SnmpPollError."""
    try:
        sock = _socket(access)
    except OSError as error:
        raise SnmpPollError(FailureKind.ADDRESS, access.where, detail=str(error)) from None
    connection = GufoConnection(access, sock, counters)
    try:
        await connection.refresh(timeout_s)
        if access.user:
            await connection.become(access, timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


async def discover(access: Access, timeout_s: float) -> bytes:
    """The agent's engine ID, by a discovery without a user (RFC 3414 section 4). Raises SnmpPollError."""
    nobody = Access(access.address, access.port, "3")
    connection = await open_gufo(nobody, timeout_s, Counters())
    connection.close()
    return connection.engine_id


def _next(sock: SnmpV1ClientSocket, iterator: GetIter) -> tuple[str, snmp.ValueType] | None:
    try:
        return sock.recv_get_next(iterator)
    except StopAsyncIteration:
        return None


def _bulk(sock: SnmpV2cClientSocket | SnmpV3ClientSocket, iterator: GetIter) -> list[tuple[str, snmp.ValueType] | None]:
    try:
        return sock.recv_get_bulk(iterator)
    except StopAsyncIteration:
        return []


def _socket(access: Access) -> _Socket:
    if access.version == "1":
        return SnmpV1ClientSocket(access.where, access.community, 0, 0, 0, 0)
    if access.version == "2c":
        return SnmpV2cClientSocket(access.where, access.community, 0, 0, 0, 0)
    return SnmpV3ClientSocket(access.where, b"", "", 0, b"", 0, b"", 0, 0, 0, 0)


def _user(access: Access) -> snmp.User:
    protocol = access.priv_protocol.removesuffix("-C")
    return snmp.User(
        access.user,
        auth_key=_AUTH[access.auth_protocol](access.auth.encode()) if access.auth else None,
        priv_key=_PRIV[protocol](access.priv.encode()) if access.priv else None,
        key_expansion=snmp.KeyExpansion.Cisco if access.priv_protocol.endswith("-C") else snmp.KeyExpansion.Blumenthal,
    )


def _value(value: snmp.ValueType) -> Value | None:
    """As profiles read it: a single float has 7 digits, not those that its widening makes up."""
    return float(f"{value:.7g}") if isinstance(value, float) else value
