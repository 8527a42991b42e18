"""One session on a device's command line: the way in, a command, its answer, and nothing out of step.

A command has ended when, after its echo, the prompt of the device stands on the last line. Quiet is waited for only
where the prompt is not known yet: before the first command, after an echo that never came, after another name.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from typing import Protocol

import asyncssh

from soakwatch.core.secrets import secret
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.platforms.platform import Dialect
from soakwatch.sources.transport.network_cli.screen import last_line, shown
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable

MAX_OUTPUT = 4 << 20
MAX_PAGES = 5_000
_SIZE = (511, 1000)  # columns and rows: the wider and the longer, the less is folded and paged
_CHUNK = 1 << 16
_HEAD = 16_384  # the echo of a command is looked for in the first characters only
_QUIET_S = 1.0  # without an echo, or after another name than before
_FIRST_QUIET_S = 0.3
_PASSWORD = re.compile(r"(?i:pass(?:word|code|wd)|secret)[^\n]{0,40}[:>] ?$")
_NEW_PASSWORD = re.compile(r"(?i:(?:new|change|enter a|expired)[^\n]{0,40}password)")


class RefusedError(Exception):
    """The device did not take a command; ``str()`` is what it said, printable and cut."""


class HungError(SourceError):
    """A command that did not come to its end in time."""


class Session(Protocol):
    """A device that answers commands."""

    async def open(self, deadline: float) -> None:
        """Makes ready, by ``deadline`` on the loop's clock. Raises SourceError."""
        ...

    async def run(self, command: str, deadline: float, stop: str = "") -> str:
        """The plain text of a command's answer. Raises Refused, and SourceError after which it is closed."""
        ...

    def close(self) -> None:
        """Gives the channel back."""
        ...

    @property
    def is_open(self) -> bool:
        """True while commands can be asked."""
        ...

    @property
    def host(self) -> str:
        """The name in the prompt; empty if there is none."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What a person should know: paging that could not be switched off, privileges that are missing."""
        ...


class PromptSession:
    """An interactive channel with a wide terminal. ``enable`` is a reference to the secret that raises privileges."""

    def __init__(
        self, line: DeviceConnection, dialect: Dialect, enable: str | None = None, most_output: int = MAX_OUTPUT
    ) -> None:
        self._line, self._dialect, self._enable, self._most = line, dialect, enable, most_output
        self._pagers = [(re.compile(pattern), key) for pattern, key in dialect.pagers]
        self._greetings = [(re.compile(pattern), key) for pattern, key in dialect.greetings]
        self._refused = re.compile(dialect.refused)
        self._anyone = dialect.prompts()
        self._mine: re.Pattern[str] | None = None
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._host = ""
        self._begun = 0.0
        self._notes: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """True while the channel stands."""
        return self._process is not None and not self._process.is_closing()

    @property
    def host(self) -> str:
        """The device's name as its prompt has it."""
        return self._host

    def notes(self) -> tuple[str, ...]:
        """What the way in brought to light."""
        return self._notes

    def close(self) -> None:
        """Closes the channel."""
        if self._process is not None:
            self._process.close()
        self._process = None

    async def open(self, deadline: float) -> None:
        """Logs in to the command line: greetings, first prompt, privileges, paging off. Raises SourceError."""
        self.close()
        self._decoder.reset()
        self._mine, self._notes = None, ()
        self._begun = self._now()
        async with _Honest(self):
            self._process = await self._channel(deadline)
            prompt = await self._first_prompt(deadline)
            notes = []
            if self._dialect.enable and prompt.rstrip().endswith(self._dialect.unprivileged):
                if self._enable is None:
                    notes.append("no enable password is set: commands that need privileges may be refused")
                else:
                    await self._raise_privileges(deadline)
            for command in self._dialect.setup:
                try:
                    await self.run(command, deadline)
                except RefusedError:
                    notes.append(f"{command!r} was refused: pages are turned one by one")
            self._notes = tuple(notes)

    async def run(self, command: str, deadline: float, stop: str = "") -> str:
        """See Session. Raises ValueError for what is no question."""
        wrong = refusal(command, self._dialect.setup)
        if wrong is not None:
            raise ValueError(wrong)
        self._begun = self._now()
        async with _Honest(self):
            self._type(command + "\n")
            text = await self._until_prompt(command, deadline, stop)
        refused_line = next((line for line in text.split("\n", 8)[:8] if self._refused.search(line[:200])), None)
        if refused_line is not None and len(text) < 600:
            raise RefusedError(printable(refused_line))
        return text

    # --- the way in ---------------------------------------------------------------------------------------

    async def _channel(self, deadline: float) -> asyncssh.SSHClientProcess[bytes]:
        for attempt in (1, 2):
            async with asyncio.timeout_at(deadline):
                connection = await self._line.connection()
                try:
                    return await connection.create_process(
                        term_type="vt100", term_size=_SIZE, encoding=None, stderr=asyncssh.STDOUT
                    )
                except (asyncssh.ChannelOpenError, asyncssh.ConnectionLost):
                    # Many systems grant one session a connection: a second one needs another connection.
                    self._line.drop()
                    if attempt == 2:
                        raise
        raise AssertionError

    async def _first_prompt(self, deadline: float) -> str:
        text, answered, nudged = "", [0] * len(self._greetings), False
        while True:
            tail = last_line(text)
            quiet = self._anyone.fullmatch(tail) is not None
            for index, (pattern, answer) in enumerate(self._greetings):
                if answered[index] < 3 and pattern.search(tail):
                    answered[index] += 1
                    text = ""
                    self._type(answer)
                    break
            else:
                if _NEW_PASSWORD.search(tail) and _PASSWORD.search(tail):
                    raise self._failed("asks for a new password before it shows a prompt: log in once by hand")
                if self._page(tail, text):
                    text = ""
            chunk = await self._read(min(deadline, self._now() + (_FIRST_QUIET_S if quiet else 2.0)))
            if chunk is None and quiet:
                return self._learn(tail)
            if chunk is None and self._now() >= deadline:
                raise self._no_prompt(text)
            if chunk is None and not nudged:
                nudged = True
                self._type("\n")
            text = (text + (chunk or ""))[-self._most :]

    async def _raise_privileges(self, deadline: float) -> None:
        """Sends the password once: a wrong one must not lock an account."""
        assert self._enable is not None
        word = secret(self._enable).reveal()
        self._type(self._dialect.enable + "\n")
        text, sent = "", False
        while True:
            tail = last_line(text)
            if _PASSWORD.search(tail):
                if sent:
                    raise self._denied("refused the enable password: check enable")
                sent, text = True, ""
                self._type(word + "\n")
            elif self._prompt(tail) and self._dialect.enable not in tail and (sent or text.count("\n") > 0):
                if tail.rstrip().endswith(self._dialect.unprivileged):
                    if sent:
                        raise self._denied("refused the enable password: check enable")
                    raise self._failed("has no enable for this account: check enable")
                return
            chunk = await self._read(deadline)
            if chunk is None:
                raise self._failed("did not answer to enable: no prompt came back")
            text = (text + chunk)[-_HEAD:]

    # --- one command ---------------------------------------------------------------------------------------

    async def _until_prompt(self, command: str, deadline: float, stop: str) -> str:
        parts: list[str] = []
        size = pages = 0
        echoed = stopped = False
        tail = ""
        while True:
            whose = self._whose(tail)
            if whose == "mine" and echoed:
                return _answer("".join(parts), command)
            wait = _QUIET_S if whose or stop else None
            chunk = await self._read(deadline if wait is None else min(deadline, self._now() + wait))
            if chunk is None and whose and self._now() < deadline:
                self._learn(tail)
                return _answer("".join(parts), command)
            if chunk is None and stop and not stopped and echoed and self._now() < deadline:
                stopped = True
                self._type(stop)
                continue
            if chunk is None:
                if self._now() < deadline:
                    continue
                raise self._no_prompt(tail, command)
            parts.append(chunk)
            size += len(chunk)
            if size > self._most:
                raise self._failed(f"sent more than {self._most >> 20} MiB for {command!r}: it was cut off")
            if len(parts) > 64:
                parts = ["".join(parts)]
            tail = last_line(chunk if "\n" in chunk else "".join(parts[-64:])[-_HEAD:])
            echoed = echoed or command in shown("".join(parts)[:_HEAD]) or size > _HEAD
            if self._page(tail, chunk):
                parts.append("\r\x1b[K")  # not every system wipes its pager's prompt away
                tail = ""
                pages += 1
                if pages > MAX_PAGES:
                    raise self._failed(f"showed more than {MAX_PAGES} pages for {command!r}: it was cut off")

    def _whose(self, tail: str) -> str:
        if self._mine is not None and self._mine.fullmatch(tail):
            return "mine"
        return "anyone" if self._anyone.fullmatch(tail) else ""

    def _prompt(self, tail: str) -> bool:
        return bool(self._whose(tail))

    def _page(self, tail: str, raw: str) -> bool:
        """Turns the page if a pager waits (and does not just wipe its prompt away)."""
        if raw.endswith(("\r", "\b", "\x1b")):
            return False
        for pattern, key in self._pagers:
            if pattern.search(tail):
                self._type(key)
                return True
        return False

    def _learn(self, prompt: str) -> str:
        match = self._anyone.fullmatch(prompt)
        assert match is not None
        self._host = match["host"]
        self._mine = self._dialect.prompts(self._host)
        return prompt

    # --- reading and writing ---------------------------------------------------------------------------------

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _type(self, text: str) -> None:
        assert self._process is not None
        self._process.stdin.write(text.encode())

    async def _read(self, until: float) -> str | None:
        """What came, or None if nothing came in time. Raises SourceError at the end of the channel."""
        assert self._process is not None
        try:
            async with asyncio.timeout_at(until):
                chunk = await self._process.stdout.read(_CHUNK)
        except TimeoutError:
            return None
        if not chunk:
            raise self._failed("ended the session in the middle: it logged the account out, or the line was cut off")
        return self._decoder.decode(chunk)

    def _failed(self, words: str) -> SourceError:
        return SourceError(f"{self._line.name} {words}")

    def _denied(self, words: str) -> LoginRefusedError:
        return LoginRefusedError(f"{self._line.name} {words}")

    def _no_prompt(self, text: str, command: str = "") -> SourceError:
        took = self._now() - self._begun
        last = next((line for line in reversed(shown(text[-_HEAD:]).split("\n")) if line.strip()), "")
        tail = f"; last line {printable(last)!r}" if last else "; it said nothing"
        after = f" after {command!r}" if command else ""
        return HungError(
            f"{self._line.name} showed no prompt like {self._dialect.shown}{after} within {took:.2g} s{tail}"
        )


class _Honest:
    """Closes a session in which anything went wrong, and its connection: it is out of step then, and its next answer
    could be that of another command."""

    def __init__(self, session: PromptSession) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, RefusedError | ValueError):
            return
        self._session.close()
        self._session._line.drop()  # noqa: SLF001 - one thing in two classes
        if isinstance(error, TimeoutError):
            raise self._session._failed("opened no session in time") from None  # noqa: SLF001
        if isinstance(error, BrokenPipeError):
            raise self._session._failed("ended the session between two commands") from None  # noqa: SLF001
        if isinstance(error, OSError | asyncssh.Error):
            raise self._session._line.failed(error) from None  # noqa: SLF001


def _answer(text: str, command: str) -> str:
    """The answer alone: without what stood before the echo, and without the prompt."""
    plain = shown(text)
    start = plain.find(command, 0, _HEAD)
    if start >= 0:
        plain = plain[start + len(command) :].partition("\n")[2]
    return plain.rpartition("\n")[0]
