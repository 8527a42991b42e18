"""gNMI values as numbers and texts, in any encoding."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Protocol

from soakwatch_gnmi.paths import Element, Plain, bare

_MAX_JSON_BYTES = 4 * 2**20
_MAX_PRECISION = 18  # of a decimal64 (RFC 7950)


class BadValueError(ValueError):
    """An unreadable value; the reason is one sentence."""


class Typed(Protocol):
    """TypedValue of gnmi.proto; ``WhichOneof("value")`` names the field that is set."""

    def WhichOneof(self, name: str) -> str | None:  # noqa: N802 - protobuf's name
        """The name of the field that is set."""
        ...


def plain(value: Typed) -> Plain:
    """The value of an update. Raises BadValueError."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    inner: object = getattr(value, kind)
    if kind in {"json_val", "json_ietf_val"}:
        if not isinstance(inner, bytes) or len(inner) > _MAX_JSON_BYTES:
            raise BadValueError("a JSON value is too large")
        try:
            parsed: Plain = json.loads(inner)
        except (ValueError, RecursionError):
            raise BadValueError("a JSON value is malformed") from None
        return parsed
    if kind == "decimal_val":
        precision = int(getattr(inner, "precision", 0))
        if precision > _MAX_PRECISION:
            raise BadValueError(f"a decimal value has {precision} digits behind its point")
        return float(getattr(inner, "digits", 0)) / 10.0**precision
    if kind == "bytes_val":
        return inner.decode("utf-8", "replace") if isinstance(inner, bytes) else None
    if kind == "leaflist_val":
        return [plain(element) for element in getattr(inner, "element", ())][:1000]
    return inner if isinstance(inner, bool | int | float | str) else None


def number(value: Plain, names: Mapping[str, float], scale: float | None) -> float:
    """The number in a value; ``names`` maps words to numbers (``default`` for all others).

    Integers stay integers, also those in JSON texts (RFC 7951). Raises BadValueError.
    """
    if names:
        word = bare(str(value))
        chosen = names.get(word, names.get(str(value), names.get("default")))
        if chosen is None:
            raise BadValueError(f"{str(value)[:40]!r} is not one of {', '.join(names)}")
        return chosen
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        value = _of_text(value)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise BadValueError(f"{str(value)[:40]!r} is not a number")
    return value if scale is None or scale == 1 else value * scale


def _of_text(text: str) -> int | float:
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise BadValueError(f"{text[:40]!r} is not a number") from None


class SentElement(Protocol):
    """A PathElem of gnmi.proto."""

    name: str
    key: Mapping[str, str]


def elements(parts: tuple[SentElement, ...]) -> tuple[Element, ...]:
    """The steps of a path that a device sent."""
    return tuple(Element(bare(part.name), dict(part.key)) for part in parts)
