"""The conversation with an agent over a byte stream: a question, polls, ``done``; everything of bounded size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from soakwatch.core.text import one_line
from soakwatch.sources.abc import SourceError
from soakwatch_agent.framing import (
    DONE,
    ERROR,
    HELLO,
    MAX_LINE,
    POLL,
    PROTOCOL,
    Frame,
    FrameError,
    Object,
    frame_of,
    question_line,
    whole,
)

_CHUNK = 1 << 16
_MAX_FRAMES = 600
_MAX_LINES_BEFORE_GREETING = 50  # lines that a .bashrc of the account may print before the agent's greeting
GREETING_TIMEOUT_S = (
    45.0  # of a greeting: an agent that has to be started first reports itself after 30 s that it does not start
)
_GREETS = f"{HELLO} ".encode()


class LinkLostError(SourceError):
    """The connection ended in the middle; another may be made at once."""


class ByteStream(Protocol):
    """A connection to an agent."""

    async def read(self, max_bytes: int) -> bytes:
        """Returns some bytes; none at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends all bytes."""
        ...

    async def close(self) -> None:
        """Ends the connection."""
        ...

    def last_words(self) -> str:
        """What the far side wrote to standard error (a shell's message), in one printable line; empty if nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question."""

    polls: tuple[Frame, ...]
    body: Object


class Conversation(Protocol):
    """A conversation with one agent."""

    hello: Object

    async def ask(self, word: str, body: Object | None = None) -> Reply:
        """Asks and waits for the answer. Raises SourceError; the connection must then be closed, because a late answer
        would be taken for the next one."""
        ...

    async def close(self) -> None:
        """Ends the conversation."""
        ...


async def lines_of(stream: ByteStream) -> AsyncIterator[bytes]:
    """The lines of a stream, with line ends. Raises SourceError for a line longer than any that an agent sends."""
    buffer = bytearray()
    while True:
        start = 0
        while (end := buffer.find(b"\n", start)) >= 0:
            yield bytes(buffer[start : end + 1])
            start = end + 1
        del buffer[:start]
        if len(buffer) > MAX_LINE:
            raise SourceError(f"the answer does not come from an agent: a line is longer than {MAX_LINE} bytes")
        seen = len(buffer)
        chunk = await stream.read(_CHUNK)
        if not chunk:
            return
        if len(buffer) + len(chunk) > MAX_LINE and chunk.find(b"\n") < 0 and seen > MAX_LINE - _CHUNK:
            raise SourceError(f"the answer does not come from an agent: a line is longer than {MAX_LINE} bytes")
        buffer += chunk


async def gather(lines: AsyncIterator[bytes], number: int) -> Reply:
    """The frames up to the one that closes the answer to a question. Raises SourceError."""
    polls: list[Frame] = []
    async for line in lines:
        frame = _frame(line)
        if frame.word == POLL:
            polls.append(frame)
            if len(polls) > _MAX_FRAMES:
                raise SourceError("the answer does not come from an agent: it is longer than was asked for")
            continue
        if frame.word == HELLO or _number(frame) not in (number, 0):
            raise SourceError("the agent answered another question: the connection is out of step")
        if frame.word == ERROR:
            text = frame.body.get("text")
            raise SourceError(one_line(text, 300) if isinstance(text, str) else "the agent refused without a reason")
        assert frame.word == DONE
        return Reply(tuple(polls), frame.body)
    raise LinkLostError("the agent ended the connection")


def greeting(line: bytes) -> Object:
    """The agent's first frame. Raises SourceError for another version, with the remedy."""
    frame = _frame(line)
    if frame.word != HELLO:
        raise SourceError("the answer does not come from an agent: the greeting is missing")
    spoken, version = frame.body.get("v"), one_line(str(frame.body.get("version", "unknown")), 40)
    if spoken != PROTOCOL:
        if isinstance(spoken, int) and spoken > PROTOCOL:
            remedy = "update soakwatch here, or install its agent there: soakwatch agent install USER@HOST --upgrade"
        else:
            remedy = "update it: soakwatch agent install USER@HOST --upgrade"
        raise SourceError(
            f"the agent there (version {version}) speaks another version of the protocol than this side: {remedy}"
        )
    return frame.body


class StreamConversation:
    """A conversation on a stream that stays open."""

    def __init__(self, stream: ByteStream, lines: AsyncIterator[bytes], hello: Object) -> None:
        self.hello = hello
        self._stream, self._lines = stream, lines
        self._number = 0

    async def ask(self, word: str, body: Object | None = None) -> Reply:
        """See Conversation."""
        self._number += 1
        try:
            await self._stream.write(question_line(self._number, word, body))
        except (OSError, EOFError):
            raise LinkLostError("the connection to the agent was lost") from None
        return await gather(self._lines, self._number)

    async def close(self) -> None:
        """See Conversation."""
        await self._stream.close()


async def greet(stream: ByteStream, what: str, timeout_s: float = GREETING_TIMEOUT_S) -> StreamConversation:
    """Waits for the agent's greeting. ``what`` names it in errors. Raises SourceError; the stream is closed then."""
    lines = lines_of(stream)
    try:
        async with asyncio.timeout(timeout_s):
            line = await _greeting_line(lines)
        return StreamConversation(stream, lines, _greeted(line, stream, what))
    except TimeoutError:
        await stream.close()
        raise SourceError(f"{what} sent no greeting within {timeout_s:g} s") from None
    except BaseException:
        await stream.close()
        raise


async def _greeting_line(lines: AsyncIterator[bytes]) -> bytes | None:
    """The line with the greeting; without one, the last of the lines read; None if no line came."""
    last = None
    for _ in range(_MAX_LINES_BEFORE_GREETING):
        line = await anext(lines, None)
        if line is None:
            break
        last = line
        if line.startswith(_GREETS):
            break
    return last


def _greeted(line: bytes | None, stream: ByteStream, what: str) -> Object:
    if line is None:
        words = stream.last_words()
        raise SourceError(f"{what} did not answer" + (f": {words}" if words else ""))
    return greeting(line)


def _frame(line: bytes) -> Frame:
    try:
        return frame_of(line)
    except FrameError as error:
        raise SourceError(str(error)) from None


def _number(frame: Frame) -> int:
    try:
        return whole(frame.body, "id", 0)
    except FrameError:
        return -1
