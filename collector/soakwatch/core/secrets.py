"""Secrets: a plan holds references (``env:NAME``, ``file:PATH``), resolved only where and when they are used.

A reference may be shown, recorded and reported, its secret may not: ``Secret`` shows nothing of it in ``repr``, ``str``
or formatting, and cannot be pickled.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import BeforeValidator, WithJsonSchema

from soakwatch.core.errors import PlanError

_REFERENCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)", re.DOTALL)
_REMEDY = "a secret must not be written in clear text: write env:NAME or file:PATH"


class Secret:
    """One secret, in memory only; only ``reveal()`` returns it."""

    __slots__ = ("_text", "reference")

    def __init__(self, reference: str, text: str) -> None:
        self.reference = reference
        self._text = text

    def reveal(self) -> str:
        """The secret itself, for the call that needs it only."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.reference})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is never written out")


def reference(value: object) -> str:
    """Returns ``value`` if it is a reference to a secret. Raises ValueError, which never holds the value.

    >>> reference("env:SNMP_AUTH")
    'env:SNMP_AUTH'
    """
    if not isinstance(value, str) or _REFERENCE.fullmatch(value) is None:
        raise ValueError(_REMEDY)
    return value


def secret(ref: str) -> Secret:
    """The secret of a reference: an environment variable, or a file's text without its last line end.

    Raises PlanError, naming only the reference, if it is missing or empty.
    """
    kind, _, where = reference(ref).partition(":")
    if kind == "env":
        value = os.environ.get(where)
        if value is None:
            raise PlanError(f"the environment variable {where} is not set: export it before the run")
        if not value:
            raise PlanError(f"the environment variable {where} is empty: export the secret before the run")
        return Secret(ref, value)
    try:
        text = Path(where).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not readable text"
        raise PlanError(f"the secret file {where} cannot be read: {why}") from None
    value = text.removesuffix("\n").removesuffix("\r")
    if not value:
        raise PlanError(f"the secret file {where} is empty: write the secret into its first line")
    return Secret(ref, value)


SecretRef = Annotated[
    str,
    BeforeValidator(reference),
    WithJsonSchema({"type": "string", "pattern": "^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$", "examples": ["env:TOKEN"]}),
]
"""A key that takes a secret: the plan holds the reference, ``secret()`` resolves it."""
