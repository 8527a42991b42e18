"""The protocol between agent and collector: one frame a line, versioned, of bounded length.

The collector sends one JSON object a line: ``{"v":1,"id":7,"ask":"looks",…}``. The agent answers with any number of
lines ``look SEQ EPOCH POLL`` (``POLL`` is a line of wire.py) and ends each answer with ``done {…}`` or ``error {…}``,
which carry the question's ``id``. The agent's very first line is ``hello {…}``. An ``error`` is one sentence that may
be shown to anybody.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from soakwatch_model.tree import Tree

PROTOCOL = 1
MAX_LINE = 4 * 2**20  # bytes of one line of the agent
MAX_QUESTION = 64 * 2**10  # bytes of one line of the collector

HELLO, POLL, DONE, ERROR = "hello", "look", "done", "error"

Object = Dict[str, Tree]


class FrameError(ValueError):
    """A line that is not a valid frame; the message says why in one sentence."""


@dataclass(frozen=True)
class Frame:
    """One line of the agent: ``word``, and its object in ``body``, or the poll with its number and epoch."""

    __slots__ = ("body", "epoch", "poll", "seq", "word")
    word: str
    body: Object
    seq: int
    epoch: int

    poll: str


def line_of(word: str, body: Object) -> bytes:
    """Encodes a frame that carries an object."""
    return f"{word} {json.dumps(body, separators=(',', ':'), ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")


def poll_line(seq: int, epoch: int, wire: bytes) -> bytes:
    """Encodes a frame that carries a poll."""
    return b"look %d %d %s\n" % (seq, epoch, wire)


def frame_of(line: bytes) -> Frame:
    """Parses one line of the agent. Raises FrameError, whose sentence quotes nothing of the line."""
    word, _, rest = line.rstrip(b"\r\n").partition(b" ")
    if word == POLL.encode():
        parts = rest.split(b" ", 2)
        if len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()) or len(parts[0]) > 18:
            raise FrameError("the agent sent a poll without a number: its output is cut or mixed with other text")
        try:
            return Frame(POLL, {}, int(parts[0]), int(parts[1][:18]), parts[2].decode("utf-8"))
        except UnicodeDecodeError:
            raise FrameError("the agent sent a poll that is not text: its output is damaged") from None
    known = {name.encode(): name for name in (HELLO, DONE, ERROR)}.get(word)
    if known is None:
        raise FrameError(
            "the answer does not come from an agent, or other text is mixed in (a login banner, a .bashrc)"
        )
    return Frame(known, object_of(rest), 0, 0, "")


def object_of(text: bytes) -> Object:
    """Parses the JSON object of a frame or question. Raises FrameError."""
    try:
        tree: Tree = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("the line is not a JSON object: it is cut or mixed with other text") from None
    if not isinstance(tree, dict):
        raise FrameError("the line is not a JSON object")
    return tree


def question_line(number: int, ask: str, body: Optional[Object] = None) -> bytes:
    """Encodes a question of the collector."""
    whole: Object = {"v": PROTOCOL, "id": number, "ask": ask}
    whole.update(body or {})
    return (json.dumps(whole, separators=(",", ":")) + "\n").encode()


def question_of(line: bytes) -> Tuple[int, str, Object]:
    """Number, word and body of a question. Raises FrameError if the version is another or the question malformed."""
    if len(line) > MAX_QUESTION:
        raise FrameError(f"the question is longer than {MAX_QUESTION} bytes")
    body = object_of(line)
    version = body.get("v")
    if version != PROTOCOL or isinstance(version, bool):
        raise FrameError(
            f"this agent speaks version {PROTOCOL} of the protocol, the collector another one: update "
            f"the older of the two"
        )
    ask = body.get("ask")
    if not isinstance(ask, str):
        raise FrameError("the question has no word 'ask'")
    return whole(body, "id", 0), ask, body


def whole(body: Object, key: str, default: Optional[int] = None) -> int:
    """A whole number of an object. Raises FrameError if it is not one, or absent without a default."""
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise FrameError(f"{key!r} is not a whole number")
    return value


def number(body: Object, key: str, default: Optional[float] = None) -> float:
    """A finite number of an object. Raises FrameError as ``whole`` does."""
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        raise FrameError(f"{key!r} is not a number")
    return float(value)


def word(body: Object, key: str, default: Optional[str] = None) -> str:
    """A text of an object. Raises FrameError as ``whole`` does."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise FrameError(f"{key!r} is not a text")
    return value


def words(body: Object, key: str) -> Optional[Tuple[str, ...]]:
    """A list of texts of an object; None if it is null or absent. Raises FrameError."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, list):
        raise FrameError(f"{key!r} is not a list of texts")
    texts = tuple(item for item in value if isinstance(item, str))
    if len(texts) != len(value):
        raise FrameError(f"{key!r} is not a list of texts")
    return texts
