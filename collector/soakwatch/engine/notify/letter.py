"""What is sent, and what came of it: two small values that go to the process that sends, and come back from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MOST_ATTACHED = 10_000_000
"""Bytes: a larger report is not attached, a mail server would refuse it."""
Kind = Literal["start", "failure", "more", "withdrawn", "end", "test"]
Tone = Literal["info", "success", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``body`` is plain text; ``summary`` is Markdown that goes with it where ``report`` cannot.

    ``finding`` is the identity of the finding that it is about, ``about`` the same in words; both may be "".
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
    """What a service is, and whether it took what was sent.

    ``service`` is the schema of its address ("" where nobody knows it), ``files`` whether it takes attachments,
    ``trouble`` why it did not take the letter ("" if it did), ``again`` whether it may do so a moment later.
    """

    service: str = ""
    files: bool = False
    trouble: str = ""
    again: bool = False
    attached: bool = False

    def line(self) -> str:
        """One line of JSON."""
        told = {
            "service": self.service,
            "files": self.files,
            "trouble": self.trouble,
            "again": self.again,
            "attached": self.attached,
        }
        return json.dumps(told)


def answer_of(line: str) -> Answer:
    """The inverse of ``Answer.line``. Raises ValueError for anything else."""
    told = json.loads(line)
    if not isinstance(told, dict):
        raise ValueError("no answer")
    return Answer(
        str(told.get("service", "")),
        told.get("files") is True,
        str(told.get("trouble", "")),
        told.get("again") is True,
        told.get("attached") is True,
    )


def order_line(to: str, letter: Message | None) -> str:
    """What the process that sends is asked: to look at the address behind a reference, or to send a letter there."""
    told: dict[str, str | None] = {"to": to}
    if letter is not None:
        told |= {
            "title": letter.title,
            "body": letter.body,
            "tone": letter.tone,
            "summary": letter.summary,
            "report": None if letter.report is None else str(letter.report),
        }
    return json.dumps(told)


def order_of(line: str) -> tuple[str, Message | None]:
    """The inverse of ``order_line``, as far as what sends has to know a letter. Raises ValueError."""
    told = json.loads(line)
    if not isinstance(told, dict):
        raise ValueError("no order")
    if "title" not in told:
        return str(told["to"]), None
    report = told["report"]
    return str(told["to"]), Message(
        "test",
        str(told["title"]),
        str(told["body"]),
        _tone(told),
        str(told["summary"]),
        None if report is None else Path(str(report)),
    )


def _tone(told: Mapping[str, object]) -> Tone:
    tones: tuple[Tone, ...] = ("success", "warning", "failure")
    return next((tone for tone in tones if tone == told["tone"]), "info")
