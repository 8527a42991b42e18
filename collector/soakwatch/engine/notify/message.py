"""A message to send and the answer to it, as exchanged with the sending process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MAX_ATTACHED_BYTES = 10_000_000
"""A larger report is not attached: a mail server would refuse it."""
Kind = Literal["start", "failure", "more", "withdrawn", "end", "test"]
Tone = Literal["info", "success", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``body`` is plain text; ``summary`` is Markdown, sent along if ``report`` cannot be attached.

    ``finding`` is the identity of its finding, ``about`` names that in words; both may be "".
    """

    kind: Kind
    title: str
    body: str
    tone: Tone = "info"
    summary: str = ""
    report: Path | None = None
    finding: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Which service it was, and whether it accepted the message.

    ``service`` is the schema of its address ("" if unknown), ``files`` whether it takes attachments, ``trouble`` why
    it did not accept the message ("" if it did), ``again`` whether a retry may succeed.
    """

    service: str = ""
    files: bool = False
    trouble: str = ""
    again: bool = False
    attached: bool = False

    def line(self) -> str:
        """One line of JSON."""
        values = {
            "service": self.service,
            "files": self.files,
            "trouble": self.trouble,
            "again": self.again,
            "attached": self.attached,
        }
        return json.dumps(values)


def answer_of(line: str) -> Answer:
    """The inverse of ``Answer.line``. Raises ValueError for anything else."""
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("no answer")
    return Answer(
        str(values.get("service", "")),
        values.get("files") is True,
        str(values.get("trouble", "")),
        values.get("again") is True,
        values.get("attached") is True,
    )


def order_line(to: str, message: Message | None) -> str:
    """The order to the sending process: send a message to the address behind a reference, or without one check it."""
    values: dict[str, str | None] = {"to": to}
    if message is not None:
        values |= {
            "title": message.title,
            "body": message.body,
            "tone": message.tone,
            "summary": message.summary,
            "report": None if message.report is None else str(message.report),
        }
    return json.dumps(values)


def order_of(line: str) -> tuple[str, Message | None]:
    """The inverse of ``order_line``, as far as the sending process needs it. Raises ValueError."""
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("no order")
    if "title" not in values:
        return str(values["to"]), None
    report = values["report"]
    return str(values["to"]), Message(
        "test",
        str(values["title"]),
        str(values["body"]),
        _tone(values),
        str(values["summary"]),
        None if report is None else Path(str(report)),
    )


def _tone(values: Mapping[str, object]) -> Tone:
    tones: tuple[Tone, ...] = ("success", "warning", "failure")
    return next((tone for tone in tones if tone == values["tone"]), "info")
