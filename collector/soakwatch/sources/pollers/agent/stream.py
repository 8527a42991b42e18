"""Bytes to and from an agent, and the conversation on them: a question, looks, ``done``; everything of bounded size."""

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
_MAX_LINES_BEFORE_GREETING = 50  # lines that a .bashrc of the account may say before the agent greets
PATIENCE_S = 45.0  # of a greeting: an agent that has to be started first says itself after 30 s that it does not start
_GREETS = f"{HELLO} ".encode()


class LinkLostError(SourceError):
    """The connection ended in the middle; another may be made at once."""


class ByteStream(Protocol):
    """A connection to an agent."""

    async def read(self, most: int) -> bytes:
        """Some bytes; none at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends all of it."""
        ...

    async def close(self) -> None:
        """Ends the connection."""
        ...

    def last_words(self) -> str:
        """What the far side said beside the stream (an error message of a shell), in one printable line, or nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question."""

    looks: tuple[Frame, ...]
    body: Object


class Talk(Protocol):
    """A conversation with one agent."""

    hello: Object

    async def ask(self, word: str, body: Object | None = None) -> Reply:
        """Asks and waits for the answer. Raises SourceError; the talk must then be closed, for it is out of step."""
        ...

    async def close(self) -> None:
        """Ends it."""
        ...


async def lines_of(stream: ByteStream) -> AsyncIterator[bytes]:
    """The lines of a stream, with their ends. Raises SourceError for one that is longer than an agent makes any."""
    buffer = bytearray()
    while True:
        begin = 0
        while (end := buffer.find(b"\n", begin)) >= 0:
            yield bytes(buffer[begin : end + 1])
            begin = end + 1
        del buffer[:begin]
        if len(buffer) > MAX_LINE:
            raise SourceError(f"what answers is no agent: it sent a line of more than {MAX_LINE} bytes")
        seen = len(buffer)
        chunk = await stream.read(_CHUNK)
        if not chunk:
            return
        if len(buffer) + len(chunk) > MAX_LINE and chunk.find(b"\n") < 0 and seen > MAX_LINE - _CHUNK:
            raise SourceError(f"what answers is no agent: it sent a line of more than {MAX_LINE} bytes")
        buffer += chunk


async def gather(lines: AsyncIterator[bytes], number: int) -> Reply:
    """The frames up to the one that closes the answer to a question. Raises SourceError."""
    looks: list[Frame] = []
    async for line in lines:
        frame = _frame(line)
        if frame.word == POLL:
            looks.append(frame)
            if len(looks) > _MAX_FRAMES:
                raise SourceError("the agent sends more than it was asked for: what answers is no agent")
            continue
        if frame.word == HELLO or _number(frame) not in (number, 0):
            raise SourceError("the agent answers something else than it was asked: the connection is out of step")
        if frame.word == ERROR:
            text = frame.body.get("text")
            raise SourceError(one_line(text, 300) if isinstance(text, str) else "the agent refused without a reason")
        assert frame.word == DONE
        return Reply(tuple(looks), frame.body)
    raise LinkLostError("the agent ended the connection")


def greeting(line: bytes) -> Object:
    """The first frame of all. Raises SourceError for another version, with the remedy."""
    frame = _frame(line)
    if frame.word != HELLO:
        raise SourceError("what answers is no agent: it does not greet as one")
    spoken, version = frame.body.get("v"), one_line(str(frame.body.get("version", "unknown")), 40)
    if spoken != PROTOCOL:
        if isinstance(spoken, int) and spoken > PROTOCOL:
            remedy = "update soakwatch here, or put this one's agent there: soakwatch agent install USER@HOST --upgrade"
        else:
            remedy = "bring it up to date: soakwatch agent install USER@HOST --upgrade"
        raise SourceError(
            f"the agent there (version {version}) speaks another version of the protocol than this side: {remedy}"
        )
    return frame.body


class StreamTalk:
    """A conversation on a stream that stays open."""

    def __init__(self, stream: ByteStream, lines: AsyncIterator[bytes], hello: Object) -> None:
        self.hello = hello
        self._stream, self._lines = stream, lines
        self._number = 0

    async def ask(self, word: str, body: Object | None = None) -> Reply:
        """See Talk."""
        self._number += 1
        try:
            await self._stream.write(question_line(self._number, word, body))
        except (OSError, EOFError):
            raise LinkLostError("the connection to the agent was lost") from None
        return await gather(self._lines, self._number)

    async def close(self) -> None:
        """See Talk."""
        await self._stream.close()


async def greet(stream: ByteStream, what: str, patience_s: float = PATIENCE_S) -> StreamTalk:
    """Waits for the agent's greeting. ``what`` names it in errors. Raises SourceError; the stream is closed then."""
    lines = lines_of(stream)
    try:
        async with asyncio.timeout(patience_s):
            line = await _greeting_line(lines)
        return StreamTalk(stream, lines, _greeted(line, stream, what))
    except TimeoutError:
        await stream.close()
        raise SourceError(f"{what} did not greet within {patience_s:g} s") from None
    except BaseException:
        await stream.close()
        raise


async def _greeting_line(lines: AsyncIterator[bytes]) -> bytes | None:
    """The line that greets; if none of the first does, the last of them; None if there is none at all."""
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
        said = stream.last_words()
        raise SourceError(f"{what} did not answer" + (f": {said}" if said else ""))
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
