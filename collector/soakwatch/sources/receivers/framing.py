"""Splits a stream into syslog messages (RFC 6587): octet counting or lines, decided per message."""

from __future__ import annotations

from soakwatch.sources.receivers.syslog_line import MAX_MESSAGE_BYTES

_COUNT = 9  # maximum digits of a length
_MAX_ANNOUNCED = 2**24  # bytes; a sender that announces more does not speak syslog


class NoSyslogError(Exception):
    """The stream is not syslog and must be closed."""


class Frames:
    """Splits a stream into messages of at most ``MAX_MESSAGE_BYTES`` bytes; the rest of longer ones is discarded."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._discard = 0  # bytes left of a too long message
        self._to_line_end = False

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now. Raises NoSyslogError for an impossible length."""
        self._buffer += data
        messages: list[bytes] = []
        while True:
            frame = self._next()
            if frame is None:
                return messages
            if frame:
                messages.append(frame)

    def rest(self) -> bytes:
        """The incomplete message at the end of the stream."""
        kept = b"" if self._to_line_end or self._discard else bytes(self._buffer[:MAX_MESSAGE_BYTES])
        self._buffer.clear()
        return kept

    def _next(self) -> bytes | None:
        """The next message, b"" for something skipped, None if more data is needed."""
        buffer = self._buffer
        if self._discard:
            gone = min(self._discard, len(buffer))
            del buffer[:gone]
            self._discard -= gone
        if not buffer:
            return None
        size = None if self._to_line_end else self._count()
        if size is None:
            return self._line()
        if size < 0:
            return None
        start = buffer.index(b" ") + 1
        wanted = min(size, MAX_MESSAGE_BYTES)
        if len(buffer) < start + wanted:
            return None
        frame = bytes(buffer[start : start + wanted])
        del buffer[: start + wanted]
        self._discard = size - wanted
        return frame

    def _count(self) -> int | None:
        """The announced length; None if the message is a line, -1 if not known yet."""
        head = bytes(self._buffer[: _COUNT + 2])
        digits, space, after = head.partition(b" ")
        if not digits.isdigit() or len(digits) > _COUNT or digits.startswith(b"0"):
            return None
        if not space or not after:
            return -1 if len(head) < _COUNT + 2 else None
        if after[:1] != b"<":
            return None
        if int(digits) > _MAX_ANNOUNCED:
            raise NoSyslogError(f"a message of {int(digits)} bytes was announced")
        return int(digits)

    def _line(self) -> bytes | None:
        buffer = self._buffer
        end = buffer.find(b"\n")
        if end >= 0:
            line = b"" if self._to_line_end else bytes(buffer[: min(end, MAX_MESSAGE_BYTES)])
            del buffer[: end + 1]
            self._to_line_end = False
            return line
        if self._to_line_end:
            buffer.clear()
        elif len(buffer) > MAX_MESSAGE_BYTES:
            line = bytes(buffer[:MAX_MESSAGE_BYTES])
            buffer.clear()
            self._to_line_end = True
            return line
        return None
