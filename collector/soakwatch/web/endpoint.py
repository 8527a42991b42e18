"""The model of an endpoint: each is an entry of a file in ``routes``, with its part of the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal, Protocol

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.lab.lab_model import User

Schema = Mapping[str, object]
JSON = "application/json"
PROVED = "proved"
"""Key in a request's ``state`` of the function to call once its token has proved right."""


class May(IntEnum):
    """What a client may do; each level includes the lower ones."""

    NOTHING = 0
    VIEW = 1  # a viewer
    ACT = 2  # an operator: starts, stops, marks, acknowledges
    ADMIN = 3  # also deletes runs, and changes what a plan asks, and of whom


ANYBODY = User("", "")
"""Who shows no token."""


class ServedRuns(Protocol):
    """The runs that a server serves."""

    def folder(self, name: str) -> Path | None:
        """The folder of a run by name, or ``last``; None for a run that is not served."""
        ...

    def listed(self) -> list[Mapping[str, object]]:
        """Every run: its name and state, oldest first."""
        ...

    def now_ns(self) -> int:
        """The time for events, UTC ns."""
        ...

    def audit(self, user: User, action: str, run: str) -> None:
        """Keep what a user did to a run, where such a thing is kept."""
        ...

    @property
    def single(self) -> bool:
        """Whether this is the server of a single running run."""
        ...


@dataclass(frozen=True, slots=True)
class Param:
    """A query parameter: its name, description and type. One with ``many`` may be repeated."""

    name: str
    says: str
    kind: Literal["text", "whole", "number"] = "text"
    many: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """A request to an endpoint. ``run`` is the folder of the run in the path, if any.

    ``words`` are the query parameters that the endpoint knows; ``body`` is as received.
    """

    runs: ServedRuns
    may: May
    user: User = ANYBODY
    run: Path | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    body: bytes = b""
    known: str = ""  # the ETag that the client has
    secure: bool = False  # whether it came over TLS

    @property
    def folder(self) -> Path:
        """The folder of the run that the path names."""
        assert self.run is not None, "only paths with {run} have one"
        return self.run

    def text(self, name: str, default: str = "") -> str:
        """A query parameter as text."""
        return self.words.get(name, (default,))[0]

    def whole(self, name: str, default: int, low: int = 0, high: int = 2**63 - 1) -> int:
        """A query parameter as an integer. Raises HTTPException 400 outside of ``low`` to ``high``."""
        text = self.text(name)
        if not text:
            return default
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and low <= int(text) <= high):
            raise HTTPException(400, f"{name} must be an integer from {low} to {high}")
        return int(text)

    def json(self) -> Mapping[str, object]:
        """The body as a JSON object. Raises HTTPException 400."""
        try:
            data: object = json.loads(self.body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise HTTPException(400, "invalid JSON: send one object") from None
        if not isinstance(data, dict):
            raise HTTPException(400, "send one JSON object")
        return data


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path. ``answer`` is called in a thread and may block; what it raises becomes one sentence:
    HTTPException and SoakwatchError with their own message, anything else as an internal error.

    ``sends`` and ``gives`` are JSON Schemas of the body and of the answer; ``media`` is the answer's type if it is not
    JSON. ``audited`` is what an answer without an error did to the run in the path, for the audit; "" for what is kept
    elsewhere, or changes nothing. Paths outside of ``/api`` and ``/metrics`` are pages for people and not in the
    OpenAPI document.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    may: May
    says: str
    answer: Callable[[EndpointRequest], Response]
    params: tuple[Param, ...] = ()
    sends: Schema | None = None
    gives: Schema | None = None
    media: str = JSON
    status: int = 200
    audited: str = ""
