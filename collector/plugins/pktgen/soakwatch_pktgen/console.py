"""Talks to Pktgen's Lua port: Lua lines go in, their output comes back.

The port is a Lua shell without a prompt that serves one client at a time; others wait in the kernel's queue. So each
exchange has a connection of its own. Two dangers are avoided:

* SIGPIPE may kill Pktgen when it writes to a client that is gone. A request that is given up closes only its own half
  of the connection, and keeps reading, within bounds, until Pktgen has written its answer.
* Queued lines are executed later. A command is therefore sent only on a connection that has just answered.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence

from soakwatch.sources.abc import SourceError
from soakwatch_pktgen.lua_text import LuaTables, read_tables

MAX_ANSWER_BYTES = 2**20
"""Maximum bytes of an answer."""
MAX_LINE = 1000
"""Maximum bytes of a line: older shells read 1023 at a time and treat the rest as another line."""
_LINGER_S = 60.0
_LAST_WAIT_S = 3.0
_PART = 65_536


class Console:
    """The Lua port of one Pktgen; one exchange at a time."""

    def __init__(self, host: str, port: int, wait_s: float) -> None:
        self._host, self._port, self._wait_s = host, port, wait_s
        self._turn = asyncio.Lock()
        self._lingering: asyncio.Task[None] | None = None
        self._count = 0

    @property
    def where(self) -> str:
        """Its name in errors."""
        return f"Pktgen at {self._host}:{self._port}"

    async def ask(self, lines: Sequence[str]) -> LuaTables:
        """The output of lines that only read: it does not matter if they are executed late or never.

        Raises SourceError in one sentence.
        """
        return await self._exchange([lines])

    async def order(self, lines: Sequence[str]) -> LuaTables:
        """The output of lines that change settings: sent only once Pktgen has answered. Raises SourceError."""
        return await self._exchange([(), lines])

    async def close(self) -> None:
        """Wait a bounded time for requests that were given up."""
        if self._lingering is not None:
            await asyncio.wait([self._lingering], timeout=_LAST_WAIT_S)
            self._lingering.cancel()
            await asyncio.wait([self._lingering])

    async def _exchange(self, rounds: Sequence[Sequence[str]]) -> LuaTables:
        async with self._turn:
            if self._lingering is not None and not self._lingering.done():
                raise SourceError(f"{self.where} has not answered the previous poll yet: {_ONE_CLIENT}")
            deadline = asyncio.get_running_loop().time() + self._wait_s
            try:
                async with asyncio.timeout_at(deadline):
                    reader, writer = await asyncio.open_connection(self._host, self._port)
            except TimeoutError:
                raise SourceError(
                    f"{self.where} did not accept a connection within {self._wait_s:g} s: is it running?"
                ) from None
            except OSError as error:
                raise SourceError(f"{self.where} cannot be reached ({_why(error)}): {_REMEDY}") from None
            finished = False
            received = bytearray()
            try:
                async with asyncio.timeout_at(deadline):
                    tables = LuaTables({}, {})
                    for lines in rounds:
                        tables = await self._round(reader, writer, lines, received)
                    finished = True
                    return tables
            except TimeoutError:
                why = f"did not answer within {self._wait_s:g} s: {_ONE_CLIENT}"
                if received:
                    why = f"does not answer like its Lua shell: {received[:60].decode('utf-8', 'replace').strip()!r}"
                raise SourceError(f"{self.where} {why}") from None
            except OSError as error:
                finished = True
                raise SourceError(f"{self.where} closed the connection: {_why(error)}") from None
            finally:
                self._leave(reader, writer, finished=finished)

    async def _round(
        self, reader: StreamReader, writer: StreamWriter, lines: Sequence[str], received: bytearray
    ) -> LuaTables:
        self._count += 1
        mark = f"soakwatch{self._count}"
        for line in (*lines, f'io.write("\\n{mark} = {{}}\\n") io.flush()'):
            sent = line.encode() + b"\n"
            assert len(sent) <= MAX_LINE, "a line that an older Pktgen would cut"
            writer.write(sent)
        await writer.drain()
        received.clear()
        begin = f"{mark} = {{".encode()
        while True:
            part = await reader.read(_PART)
            received += part
            index = received.rfind(begin)
            if index >= 0 and received.find(b"}", index) >= 0:
                return read_tables(received[:index].decode("utf-8", "replace"))
            if not part:
                what = (
                    "closed the connection in the middle of its answer"
                    if received
                    else "closed the connection without an answer"
                )
                raise SourceError(f"{self.where} {what}: {_REMEDY}")
            if len(received) > MAX_ANSWER_BYTES:
                raise SourceError(f"{self.where} answers with more than {MAX_ANSWER_BYTES >> 20} MiB: {_REMEDY}")

    def _leave(self, reader: StreamReader, writer: StreamWriter, *, finished: bool) -> None:
        try:
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()
        except OSError:
            finished = True
        if finished:
            writer.close()  # nothing is in transit: the mark is printed last
        else:
            self._lingering = asyncio.create_task(_linger(reader, writer))


async def _linger(reader: StreamReader, writer: StreamWriter) -> None:
    """Read the rest of the answer to a request that was given up."""
    try:
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(_PART):
                pass
    except (TimeoutError, OSError):
        pass
    finally:
        writer.transport.abort()


def table_line(name: str, what: str) -> str:
    """A line that writes the table ``what`` as ``name = {...}``, or nothing if it is no table.

    It needs only Lua's own library: ``prints`` is Pktgen's, which an installed Pktgen does not find. ``io.write``
    reaches the client in every version, ``print`` does not. An error would show on Pktgen's screen at each poll.
    """
    return (
        f"do local ok,t=pcall(function() return {what} end) if ok and type(t)=='table' then {_WRITER}"
        f"io.write('\\n{name} = ') w(t) io.write('\\n') io.flush() end end"
    )


def lua_string(text: str) -> str:
    """A Lua string literal, for texts without control characters.

    >>> lua_string('say "all"')
    '"say \\\\"all\\\\""'
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _why(error: OSError) -> str:
    if error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return (error.strerror or "the connection was lost").lower()


_WRITER = (  # Lua before 5.3 has only floats, and would print fourteen of their digits
    "local function w(v) if type(v)~='table' then io.write(type(v)=='string' and string.format('%q',v) or "
    "type(v)=='number' and not math.type and string.format('%.17g',v) or tostring(v)) "
    "return end io.write('{') for k,x in pairs(v) do io.write('[',type(k)=='string' and string.format('%q',k) or "
    "tostring(k),']=') w(x) io.write(',') end io.write('}') end "
)
_ONE_CLIENT = "its Lua port serves one client at a time, so disconnect the others"
_REMEDY = "start it with -G (or -g HOST:PORT), and set host and port"
