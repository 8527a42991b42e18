"""JSON templates: which objects of an output a template takes, and which of their values.

A path has its keys between dots. ``{vrf}`` stands for every key, whose word is kept under that name; ``a|b`` is the
first of two keys that is there; ``**.name`` is every object under a name, wherever it stands, and a path that ends with
``**`` every object at all. A list stands for each of its objects: a table of one row is an object, of several a list.

A key that no path names is of no interest, for devices add keys with each release. A value that is not there is no
word: what is written of it is left out (``template``), and a session without a peer is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import PlainValidator

from soakwatch.core.validation import Several
from soakwatch.sources.platforms.output_template import OutputTemplate, Pattern, Scope
from soakwatch.sources.platforms.parsed import ParsedBuilder

_MAX_DEPTH = 48
_BEGIN = re.compile(r"[{\[]")
_STEP = re.compile(r"(?P<anywhere>\*\*(?:\.|$))?(?:\{(?P<word>\w+)\}|(?P<keys>[^.{}*]+))?(?:\.|$)")


class PathStep(NamedTuple):
    """One step of a path: to the first of some ``keys``, or to every key, which is kept as ``word``; or no step at
    all. ``anywhere``: it begins at every object below as well."""

    keys: tuple[str, ...] = ()
    word: str = ""
    anywhere: bool = False


def _steps(text: object) -> tuple[PathStep, ...]:
    """The steps of a path. Raises ValueError for what is none."""
    path, steps, at = str(text), list[PathStep](), 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or not any(match.groups()) or (match["anywhere"] and match["word"]):
            raise ValueError(
                f"{path!r} is no path: write keys between dots, {{word}} for every key, **.key for anywhere"
            )
        steps.append(PathStep(tuple((match["keys"] or "").split("|")), match["word"] or "", bool(match["anywhere"])))
        at = match.end()
    return tuple(steps)


class At(NamedTuple):
    """An object of the output, what it stands in, and the words of the keys on the way to it."""

    row: Mapping[str, object]
    above: At | None
    words: Scope


def _rows(
    value: object, steps: tuple[PathStep, ...], above: At | None, words: Scope, depth: int = _MAX_DEPTH
) -> Iterator[At]:
    """The objects at the end of a path, in their order."""
    if isinstance(value, list) and depth:
        for item in value:
            yield from _rows(item, steps, above, words, depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    here = At(value, above, words)
    if not steps or steps[0] == _EVERY:
        yield here
    if not steps:
        return
    step, rest = steps[0], steps[1:]
    found = next((key for key in step.keys if key in value), None)
    for key, inner in value.items():
        if step.word:
            yield from _rows(inner, rest, here, {**words, step.word: str(key)}, depth - 1)
        elif key == found:
            yield from _rows(inner, rest, here, words, depth - 1)
        elif step.anywhere:
            yield from _rows(inner, steps, here, words, depth - 1)


_EVERY = PathStep(("",), "", anywhere=True)


class Value(NamedTuple):
    """Where a value stands in an object, or (``^``) in the nearest object above that has it; or the ``{word}`` of a key
    on the way to it."""

    keys: tuple[str, ...]
    word: str = ""
    is_above: bool = False

    @classmethod
    def of(cls, text: object) -> Value:
        """Reads it. Raises ValueError for nothing."""
        path = str(text).removeprefix("^")
        if not path:
            raise ValueError("a value has a path of keys, such as details.stateTime")
        if path.startswith("{") and path.endswith("}"):
            return cls((), path[1:-1])
        return cls(tuple(path.split(".")), "", str(text).startswith("^"))

    def text(self, at: At) -> str:
        """The value; nothing where there is none."""
        if self.word:
            return at.words.get(self.word, "")
        place = at.above if self.is_above else at
        while place is not None:
            if words := _leaf(_inner(place.row, self.keys)):
                return words
            place = place.above if self.is_above else None
        return ""


def _inner(value: object, keys: Sequence[str]) -> object:
    for key in keys:
        if isinstance(value, list):
            at = int(key) if key.isdecimal() else 0
            value = value[at] if at < len(value) else None
            if key.isdecimal():
                continue
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _leaf(value: object) -> str:
    """A plain value as text, or the first of a list, or its ``data`` as Junos writes it."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("data")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip() if isinstance(value, str | int | float) else ""


Steps = Annotated[tuple[PathStep, ...], PlainValidator(_steps)]
Values = Several[Annotated[Value, PlainValidator(Value.of, json_schema_input_type=str)]]


class JsonTemplate(OutputTemplate):
    """One template: the objects ``at`` a path of which it takes values, each the first that is there of its paths. It
    holds where the words that it took ``match``; the groups of these expressions are words as well."""

    at: Steps = ()
    take: Mapping[str, Values] = {}
    match: Mapping[str, Pattern] = {}

    @property
    def names(self) -> frozenset[str]:
        """The words that it takes of an object."""
        groups = (pattern.groupindex for pattern in self.match.values())
        return frozenset((*self.take, *(step.word for step in self.at if step.word))).union(*groups)

    def taken(self, draft: ParsedBuilder, at: At) -> bool:
        """Writes what it says of an object; whether it takes it."""
        words = dict(at.words)
        for name, values in self.take.items():
            for value in values:
                if text := value.text(at):
                    words[name] = text
                    break
        for name, pattern in self.match.items():
            match = pattern.match(words.get(name, ""))
            if match is None:
                return False
            words |= {group: found for group, found in match.groupdict().items() if found is not None}
        self.write(draft, words, at.row)
        return True


def is_json(text: str) -> bool:
    """Whether an output is JSON, for commands that some releases answer in lines."""
    return text.lstrip()[:1] in ("{", "[")


def read_json(draft: ParsedBuilder, text: str, templates: Sequence[JsonTemplate], nothing: Pattern | None) -> None:
    """What the templates make of a text; of those of one path the first that holds takes an object. A text that is no
    JSON is unknown, but for one that says that there is ``nothing`` to list."""
    document = _document(text)
    if document is None and text.strip() and (nothing is None or not nothing.match(text)):
        draft.odd(text.strip()[:200])
    for path in dict.fromkeys(template.at for template in templates):
        ours = [template for template in templates if template.at == path]
        for at in _rows(document, path, None, {}):
            any(template.taken(draft, at) for template in ours)


def _document(text: str) -> object:
    """The JSON of a text, which may have words before and behind it; None if there is none."""
    begin = _BEGIN.search(text)
    if begin is None:
        return None
    end = text.rfind("}" if begin[0] == "{" else "]") + 1
    try:
        return json.loads(text[begin.start() : end])
    except (ValueError, RecursionError):
        return None
