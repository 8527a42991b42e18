"""An SNMP agent for tests and for trying profiles: v1, v2c and v3 on a UDP socket, from recordings or hand-written
cells.

It runs in a thread of its own and is used as a context manager::

    with responder(load_recording(path).rows) as agent:
        ...  # ask agent.address
        agent.set("1.3.6.1.2.1.1.3.0", timeticks(0))
        agent.misbehave(Faults(drop=0.2))
        agent.reboot(renumber=True)

One agent can serve several devices, chosen by the community in v1 and v2c, by the context in v3 (empty: the first).
Time is virtual: ``advance`` lets it pass. ``python -m soakwatch_testing.snmp_responder FILE`` serves files. v1 and v2c
are implemented here (3 µs of CPU per row), v3 uses pysnmp (60 µs).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from soakwatch_testing.snmp_answer import MAX_ANSWER_BYTES, EncodedAnswer, answer, reply_of
from soakwatch_testing.snmp_ber import V3, Ask, UndecodableError, read_message, version_of, write_response
from soakwatch_testing.snmp_cells import Cell, Name, dotted, name_of
from soakwatch_testing.snmp_faults import NO_FAULTS, Faults, Mischief
from soakwatch_testing.snmp_mib import Mib, cell_of
from soakwatch_testing.snmp_recording import BadRecordingError, load_recording
from soakwatch_testing.snmp_usm import Security, User

T = TypeVar("T")
_WAIT_S = 30.0
_TRACED = 1_000_000  # maximum number of names
_RECEIVE_OCTETS = 4 * 2**20


class Responder:
    """A running agent. Its methods may be called from any thread and return once they have taken effect."""

    def __init__(self, mibs: Mapping[str, Mib], users: tuple[User, ...], now: Callable[[], float], trace: bool) -> None:  # noqa: FBT001
        self._mibs = dict(mibs)
        self._users = users
        self._now = now
        self._ahead_s = 0.0
        self._boot_s = dict.fromkeys(self._mibs, now())
        self._engine_id = b"\x80\x00\x1f\x88\x04" + secrets.token_bytes(8)
        self._mischief = Mischief(NO_FAULTS)
        self._security: Security | None = None
        self._names: set[Name] | None = set() if trace else None
        self._applied = False  # whether the faults apply to the current request
        self._post: asyncio.DatagramTransport | None = None
        self._aside: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.address = ("", 0)
        self.requests = 0  # datagrams received

    # --- what a test does -----------------------------------------------------------------------------------

    def set(self, oid: str, value: Cell | int | str | bytes, community: str | None = None) -> None:
        """Set an object to a value of any type, right or wrong."""
        self._do(lambda: self._mib(community).put(name_of(oid), cell_of(value)))

    def remove(self, oid: str, community: str | None = None) -> None:
        """Remove an object and all below it."""
        self._do(lambda: self._mib(community).remove(name_of(oid)))

    def misbehave(self, faults: Faults) -> None:
        """Faults from now on; ``Faults()`` ends them."""
        self._do(lambda: setattr(self, "_mischief", Mischief(faults)))

    def drop(self, share: float = 1.0, *, requests: int | None = None, seed: int = 1) -> None:
        """Drop this share of the requests (1: silence), of the next ``requests`` or until changed."""
        self.misbehave(Faults(drop=share, requests=requests, seed=seed))

    def advance(self, seconds: float) -> None:
        """Let time pass for the agent."""

        def go() -> None:
            self._ahead_s += seconds
            if self._security is not None:
                self._security.begin(self._security.boots(), self._security.seconds() + seconds)

        self._do(go)

    def reboot(self, *, renumber: bool = False, community: str | None = None) -> None:
        """Restart the device: uptimes and counters 0, one more boot of the engine."""

        def go() -> None:
            key = self._key(community)
            self._boot_s[key] = self._time()
            self._mibs[key].reboot(renumber=renumber)
            self._count_boot()

        self._do(go)

    def restart_agent(self, community: str | None = None) -> None:
        """Restart only the agent: sysUpTime 0 and one more boot; the host continues."""

        def go() -> None:
            key = self._key(community)
            self._mibs[key].restart_agent(self._time() - self._boot_s[key])
            self._boot_s[key] = self._time()
            self._count_boot()

        self._do(go)

    def renew_engine(self, *, same_id: bool = False, boots: int = 1) -> None:
        """A new engine ID, as after a loss of storage, or the same one with its boots reset."""

        def go() -> None:
            if not same_id:
                self._engine_id = b"\x80\x00\x1f\x88\x04" + secrets.token_bytes(8)
                if self._security is not None:
                    self._security.close()
                    self._security = self._secure(boots)
            elif self._security is not None:
                self._security.begin(boots, 0.0)

        self._do(go)

    def answered_names(self) -> frozenset[str]:
        """The names of all objects in answers so far (only with ``trace``)."""
        return self._do(lambda: frozenset(map(dotted, self._names or ())))

    # --- the agent's own thread -----------------------------------------------------------------------------

    async def serve(self, host: str, port: int, listening: Callable[[], None]) -> None:
        """Listen until cancelled; ``listening`` is called once ``address`` is set."""
        self._loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        with sock, socket.socket(sock.family, socket.SOCK_DGRAM) as aside:
            sock.setblocking(False)  # noqa: FBT003 - the name of the argument is not ours
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_OCTETS)
            sock.bind((host, port))
            aside.bind((host, 0))
            self._aside = aside
            if self._users:
                self._security = self._secure(1)
            self._post, _ = await self._loop.create_datagram_endpoint(lambda: _Ears(self._receive), sock=sock)
            self.address = sock.getsockname()[:2]
            try:
                listening()
                await self._loop.create_future()
            finally:
                self._post.close()
                await asyncio.sleep(0)  # the transport closes in the loop's next turn
                if self._security is not None:
                    self._security.close()

    def _receive(self, datagram: bytes, sender: tuple[str, int]) -> None:
        self.requests += 1
        self._applied = False
        try:
            answers = self._answers(datagram, sender)
        except (UndecodableError, RecursionError):
            return
        faults = self._mischief.faults if self._applied else NO_FAULTS
        for octets in answers:
            if self._applied:
                if self._mischief.drops():
                    continue
                octets = self._mischief.spoil(octets)  # noqa: PLW2901
            for _ in range(2 if faults.twice else 1):
                if faults.delay_s and self._loop is not None:
                    self._loop.call_later(faults.delay_s, self._send, octets, sender, faults.astray)
                else:
                    self._send(octets, sender, faults.astray)

    def _answers(self, datagram: bytes, sender: tuple[str, int]) -> list[bytes]:
        version = version_of(datagram)
        if version == V3:
            if self._security is None:
                return []
            answers = self._security.receive(datagram, sender)
            # Reports of discovery and of wrong times have no names: faults without ``below`` apply to them too.
            if not self._applied and answers:
                self._applied = self._mischief.applies(())
            return answers
        message = read_message(datagram)
        key = message.community.decode("utf-8", "replace")
        encoded = self._say(key, message.ask, version)
        if encoded is None:
            return []
        number = (message.ask.number + encoded.shift + 2**31) % 2**32 - 2**31
        return [write_response(version, message.community, number, reply_of(encoded), encoded.bindings)]

    def _say(self, key: str, ask: Ask, version: int, largest: int = MAX_ANSWER_BYTES) -> EncodedAnswer | None:
        mib = self._mibs.get(key)
        if mib is None:
            return None
        self._applied = self._mischief.applies(ask.names)
        mischief = self._mischief if self._applied else None
        seconds = self._time() - self._boot_s[key]
        encoded = answer(mib, ask, version, seconds, mischief, largest)
        if mischief is not None and mischief.faults.wrong_id:
            encoded = dataclasses.replace(encoded, shift=1)
        if self._names is not None and len(self._names) < _TRACED:
            self._names.update(encoded.names)
        return encoded

    def _say_v3(self, context: str, ask: Ask, largest: int) -> EncodedAnswer | None:
        return self._say(context or next(iter(self._mibs)), ask, V3, min(largest, MAX_ANSWER_BYTES))

    def _send(self, octets: bytes, receiver: tuple[str, int], astray: bool) -> None:  # noqa: FBT001
        if astray and self._aside is not None:
            self._aside.sendto(octets, receiver)
        elif self._post is not None and not self._post.is_closing():
            self._post.sendto(octets, receiver)

    def _secure(self, boots: int) -> Security:
        return Security(self._users, self._engine_id, boots, self._say_v3)

    def _count_boot(self) -> None:
        if self._security is not None:
            self._security.begin(self._security.boots() + 1, 0.0)

    def _time(self) -> float:
        return self._now() + self._ahead_s

    def _key(self, community: str | None) -> str:
        key = next(iter(self._mibs)) if community is None else community
        if key not in self._mibs:
            raise KeyError(f"no device answers to the community {key!r}")
        return key

    def _mib(self, community: str | None) -> Mib:
        return self._mibs[self._key(community)]

    def _do(self, work: Callable[[], T]) -> T:
        """Run something in the agent's thread, and wait for it."""
        if self._loop is None:
            raise RuntimeError("the agent does not run")
        result: Future[T] = Future()

        def do() -> None:
            try:
                result.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised again for the caller
                result.set_exception(error)

        self._loop.call_soon_threadsafe(do)
        return result.result(_WAIT_S)


class _Ears(asyncio.DatagramProtocol):
    def __init__(self, heard: Callable[[bytes, tuple[str, int]], None]) -> None:
        self._heard = heard

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._heard(data, addr)


Rows = Mib | Mapping[Name, Cell]


@contextlib.contextmanager
def responder(
    rows: Rows | Mapping[str, Rows],
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    community: str = "public",
    users: Sequence[User] = (),
    trace: bool = False,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Responder]:
    """An agent with one device, or several by community. Raises OSError if the port is taken.

    ``port`` 0 is any free one; ``trace`` keeps the names in answers; ``now`` is the clock (seconds).
    """
    agent = Responder(_mibs(rows, community), tuple(users), now, trace)
    listening: Future[None] = Future()
    stop: list[Callable[[], object]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(agent.serve(host, port, lambda: listening.set_result(None)))
        stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised again for the caller
            if not listening.done():
                listening.set_exception(error)

    thread = threading.Thread(target=work, name="snmp-responder", daemon=True)
    thread.start()
    try:
        listening.result(_WAIT_S)
        yield agent
    finally:
        for end in stop:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                end()
        thread.join(_WAIT_S)


def _mibs(rows: Rows | Mapping[str, Rows], community: str) -> dict[str, Mib]:
    if isinstance(rows, Mib):
        return {community: rows}
    if not rows:
        return {community: Mib({})}
    several = {key: value for key, value in rows.items() if isinstance(key, str) and isinstance(value, Mib | Mapping)}
    if several:
        return {key: value if isinstance(value, Mib) else Mib(value) for key, value in several.items()}
    return {
        community: Mib({key: cell for key, cell in rows.items() if isinstance(cell, Cell) and isinstance(key, tuple)})
    }


def main(argv: list[str] | None = None) -> int:
    """Serve recordings until SIGTERM or SIGINT; prints the address on the first line once it listens."""
    parser = argparse.ArgumentParser(prog="python -m soakwatch_testing.snmp_responder", description=main.__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="recordings (.snmprec, .snmprec.gz)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=1161, help="UDP port (default: 1161; 0: any free one)")
    parser.add_argument("--community", help="of the only file (default: public); several answer to their names")
    parser.add_argument("--user", help="a user of SNMPv3 without authentication")
    parser.add_argument("--still", action="store_true", help="the uptimes stand still, as in the recording")
    options = parser.parse_args(argv)
    mibs: dict[str, Mib] = {}
    try:
        for file in options.files:
            recording = load_recording(file)
            mib = Mib(recording.rows)
            if not options.still:
                mib.tick()
            name = file.name.removesuffix(".gz").removesuffix(".snmprec")
            mibs[options.community or ("public" if len(options.files) == 1 else name)] = mib
            for complaint in recording.complaints[:5]:
                print(f"skipped {complaint}", file=sys.stderr)
        users = [User(options.user)] if options.user else []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with responder(mibs, port=options.port, host=options.host, users=users) as agent:
            devices = ", ".join(f"{name} ({len(mib)} objects)" for name, mib in mibs.items())
            print(f"{agent.address[0]}:{agent.address[1]} {devices}", flush=True)
            signal.pause()
    except (BadRecordingError, OSError) as error:
        print(f"snmp_responder: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
