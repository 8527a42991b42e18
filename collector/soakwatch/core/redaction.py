"""Removes secrets from stored output of devices and programs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import reference, secret
from soakwatch.core.yaml import Plain, parse

MIN_SECRET_LENGTH = 4
"""A shorter text is no secret; removing it would make the output unreadable."""
LIKELY = 8
"""The same for a variable that is a secret only by its name."""
_MAX_FILE_BYTES = 65_536  # a larger file holds no secret
_SIGN = b"***"


_SECRET_NAME = re.compile(r"pass(?!port)|token|secret|credential|api_?key|private_?key", re.IGNORECASE)


class Redaction:
    """Removes the secrets of some references, and environment variables with a secret-like name (a script may print its
    whole environment); they are looked up at each use and never kept."""

    def __init__(self, references: Iterable[str] = ()) -> None:
        self._references = tuple(dict.fromkeys(references))

    def text(self, text: str) -> str:
        """Replaces secrets in text."""
        return self.output(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def output(self, data: bytes) -> bytes:
        """Replaces secrets in output, also those escaped for a URL or JSON."""
        for form in self._forms():
            data = data.replace(form, _SIGN)
        return data

    def file(self, data: bytes) -> bytes:
        """Overwrites secrets in a file of any kind; all other bytes keep their places."""
        for form in self._forms():
            data = data.replace(form, b"*" * len(form))
        return data

    def _forms(self) -> list[bytes]:
        forms: set[str] = set()
        named = [(value, LIKELY) for name, value in os.environ.items() if _SECRET_NAME.search(name)]
        for value, shortest in [*self._values(), *named]:
            for text in (value, value.strip()):
                if shortest <= len(text) <= _MAX_FILE_BYTES:
                    forms |= {text, quote(text, safe=""), json.dumps(text)[1:-1]}
        return sorted((form.encode("utf-8", "replace") for form in forms), key=len, reverse=True)

    def _values(self) -> Iterator[tuple[str, int]]:
        for reference_ in self._references:
            try:
                yield secret(reference_).reveal(), MIN_SECRET_LENGTH
            except PlanError:
                continue  # a secret that does not exist cannot leak


def redaction_of(plan_text: str) -> Redaction:
    """The redaction of all secrets that a recorded plan refers to."""
    return Redaction(_references(parse(plan_text, "plan").data) if plan_text.strip() else ())


def _references(value: Plain) -> Iterator[str]:
    if isinstance(value, str):
        try:
            yield reference(value)
        except ValueError:
            return
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
