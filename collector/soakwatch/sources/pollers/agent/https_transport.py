"""The connection to an agent over HTTPS: TLS 1.2 and later, a pinned certificate, a token; as much of HTTP as that
needs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from soakwatch.core.secrets import secret
from soakwatch.core.text import one_line
from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.agent.agent_stream import Conversation, LinkLostError, Reply, gather, greeting, lines_of
from soakwatch_agent.framing import MAX_LINE, Object, question_line

_FAREWELL_S = 2.0
_CHUNK = 1 << 16
_MAX_ANSWER_BYTES = 3 * MAX_LINE


class HttpsTransport:
    """HTTPS with a token. With a pinned certificate nothing is sent before its fingerprint is verified."""

    def __init__(self, url: str, token: str, fingerprint: str | None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token, self._pin = token, fingerprint

    async def connect(self) -> Conversation:
        """See Transport."""
        conversation = _HttpsConversation(self)
        try:
            await conversation.ask("status")
        except BaseException:
            await conversation.close()
            raise
        return conversation

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """One connection whose certificate is right. Raises SourceError."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._pin is not None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # the fingerprint below is the verification
        where = f"{self._host}:{self._port}"
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=context, limit=_CHUNK)
        except ssl.SSLCertVerificationError as error:
            raise SourceError(
                f"the certificate of {where} is not trusted ({one_line(error.verify_message, 120)}): if it is the "
                "agent's own, pin it with fingerprint"
            ) from None
        except ssl.SSLError:
            raise SourceError(f"{where} does not speak TLS 1.2 or later: check that it is the agent's port") from None
        except OSError as error:
            raise SourceError(f"the agent at {where} cannot be reached: {type(error).__name__}") from None
        if self._pin is not None:
            tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
            shown = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()
            if shown != self._pin:
                writer.close()
                raise SourceError(
                    f"the certificate of {where} has the fingerprint {shown}, not the pinned one: if the agent was "
                    "given a new certificate change fingerprint; if not, the connection is intercepted"
                )
        return reader, writer

    def request(self, question: bytes) -> bytes:
        """A question as an HTTP request; the token is resolved now."""
        token = secret(self._token).reveal()
        if not token.isascii() or not token.isprintable():
            raise SourceError(f"the token of {self._token} holds characters that HTTP cannot carry")
        head = (
            f"POST /v1 HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(question)}\r\n\r\n"
        )
        return head.encode() + question

    def drop(self) -> None:
        """See Transport."""

    def identity(self) -> Mapping[str, str]:
        """See Transport."""
        return {"way": "https", "certificate": f"SHA256 {self._pin} (pinned)" if self._pin else "signed"}

    def notes(self) -> tuple[str, ...]:
        """See Transport."""
        return ()


class _HttpsConversation:
    """Questions over a connection that is kept while it lasts."""

    def __init__(self, transport: HttpsTransport) -> None:
        self.hello: Object = {}
        self._transport = transport
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._number = 0

    async def ask(self, word: str, body: Object | None = None) -> Reply:
        """See Conversation."""
        self._number += 1
        if self._open is None:
            self._open = await self._transport.open()
        reader, writer = self._open
        try:
            writer.write(self._transport.request(question_line(self._number, word, body)))
            await writer.drain()
            answer = await _answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            raise LinkLostError("the agent ended the connection") from None
        lines = _split(answer)
        self.hello = greeting(await anext(lines, b""))
        return await gather(lines, self._number)

    async def close(self) -> None:
        """See Conversation."""
        if self._open is not None:
            _, writer = self._open
            self._open = None
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise SourceError("the answer does not come from an agent: its HTTP header has no end") from None
    status, *fields = head.split("\r\n")
    words = status.split(" ")
    code = words[1] if len(words) > 1 and words[0].startswith("HTTP/1.") else ""
    if code == "401":
        raise SourceError("the agent refused the token: give the one of its token file (token: env:NAME or file:PATH)")
    if code != "200":
        raise SourceError(
            f"the answer does not come from an agent: HTTP status {code if code.isdigit() else 'missing'}"
        )
    pairs = (field.partition(":") for field in fields)
    length = next((value.strip() for name, _, value in pairs if name.lower() == "content-length"), "")
    if not length.isdigit() or len(length) > 9 or int(length) > _MAX_ANSWER_BYTES:
        raise SourceError("the answer does not come from an agent: its length is missing or too large")
    return await reader.readexactly(int(length))


class _Bytes:
    """Bytes that have all arrived, as a stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, max_bytes: int) -> bytes:
        data, self._data = self._data[:max_bytes], self._data[max_bytes:]
        return data

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...

    def last_words(self) -> str:
        return ""


def _split(data: bytes) -> AsyncIterator[bytes]:
    return lines_of(_Bytes(data))
