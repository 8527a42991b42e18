"""What a template writes of an output: readings, processes, facts, sessions, and what is told once.

Text is written with ``{name}``: the name of a group of an expression, of a column, or of what was taken of JSON.
``{name|words}`` gives words for what was not there, ``{name:lower}`` small letters. A reading whose number was not
there is left out; where the command ``reports`` its metric, that is a fault of the poll. A number that is none is a
fault of its own.

TextFSM has the form (states, a template a line, an error for what is unknown). Here a template also says of which
metric, labels and unit a number is, so that no code stands between it and a sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, ValidationInfo

from soakwatch.core import regex
from soakwatch.sources.drop_reasons import refused_on_purpose
from soakwatch.sources.platforms.cli_units import ADDRESS, length, number, size
from soakwatch.sources.platforms.cli_units import Length as Span
from soakwatch.sources.platforms.parsed import ParsedBuilder
from soakwatch_model.metric import BY_NAME

Scope = Mapping[str, str]
_FIELD = re.compile(r"\{(\w+)(?::(lower|squash))?(?:\|([^}]*))?\}")
_ALONE = re.compile(r"\{\w+\}")
_UNITS = {
    "": (1, 1), "B": (1, 1), "KiB": (1024, 1), "MiB": (1024**2, 1), "GiB": (1024**3, 1),
    "%": (1, 100), "s": (1, 1), "ms": (1, 1000),
}  # fmt: skip
"""What a number is multiplied with and divided by."""
_SIGNS = {"+": 1.0, "-": -1.0}
_LONGEST_S = 1e10
_CONDITIONS = frozenset(("match", "find", "each", "head", "cells", "when", "at", "take"))


class TextTemplate(NamedTuple):
    """Text with fields.

    >>> TextTemplate.of("core {n}").said({"n": "3"}), TextTemplate.of("{table:lower|all}").said({"table": ""})
    ('core 3', 'all')
    """

    text: str
    fields: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    alone: str = ""

    @classmethod
    def of(cls, text: str) -> TextTemplate:
        """Reads it. Raises ValueError for a bracket that is no field."""
        if "{" in _FIELD.sub("", text) or "}" in _FIELD.sub("", text):
            raise ValueError(
                f"{text!r} has a bracket that is no field: write {{name}}, {{name:lower}} or {{name|else}}"
            )
        found = list(_FIELD.finditer(text))
        return cls(
            text,
            frozenset(match[1] for match in found),
            frozenset(match[1] for match in found if match[3] is None),
            text[1:-1] if _ALONE.fullmatch(text) else "",
        )

    def said(self, scope: Scope) -> str:
        """The text with its fields filled in."""
        if self.alone:  # most are: the same as below, in a tenth of the time
            return scope.get(self.alone, "")
        return _FIELD.sub(lambda match: _field(match, scope), self.text) if self.fields else self.text


def _field(match: re.Match[str], scope: Scope) -> str:
    words = scope.get(match[1], "")
    if match[2] == "lower":
        words = words.lower()
    elif match[2] == "squash":
        words = " ".join(words.lower().split())
    return words or match[3] or ""


class Amount(NamedTuple):
    """A number with its unit: ``{used} KiB``, ``{busy} %``, ``100 - {idle} - {iowait|0} %``, ``{n} {unit}``, and
    ``{total} - {free} B``, where each part may have a unit of its own, as ``12.5MiB`` has.

    A size whose unit is a field may have none there. A share is not below zero.
    """

    terms: tuple[tuple[float, TextTemplate], ...]
    unit: TextTemplate

    @classmethod
    def of(cls, text: str) -> Amount:
        """Reads it. Raises ValueError for what is none."""
        parts = text.split()
        unit = parts.pop() if len(parts) % 2 == 0 else ""
        if not parts or (unit and unit not in _UNITS and _FIELD.fullmatch(unit) is None):
            raise ValueError(
                f"{text!r} is no amount: write {{n}}, {{n}} %, {{n}} KiB, {{n}} {{unit}} or 100 - {{idle}} %"
            )
        signs = ["+", *parts[1::2]]
        if any(sign not in _SIGNS for sign in signs):
            raise ValueError(f"{text!r} is no amount: its parts are added (+) or taken away (-)")
        terms = zip(signs, parts[::2], strict=True)
        return cls(tuple((_SIGNS[sign], TextTemplate.of(part)) for sign, part in terms), TextTemplate.of(unit))

    def there(self, scope: Scope) -> bool:
        """Whether all parts of the number were there to be read."""
        return all(words.needs <= scope.keys() for _, words in self.terms)

    def write(
        self, draft: ParsedBuilder, metric: str, port: str | None, labels: Mapping[str, str], scope: Scope
    ) -> None:
        """Takes the reading, or a fault where it is no number."""
        said: str | float = self.terms[0][1].said(scope)
        if len(self.terms) > 1:
            try:
                said = self._sum(scope)
                said = max(0.0, said) if self.unit.text == "%" else said
            except ValueError:
                said = " ".join(words.said(scope) for _, words in self.terms)
        if self.unit.text == "%":
            draft.share(metric, said, port, **labels)
        elif self.unit.fields or (self.unit.text == "B" and isinstance(said, str)):
            draft.size(metric, str(said), self.unit.said(scope) if self.unit.fields else "", **labels)
        else:
            draft.value(metric, said, _UNITS[self.unit.text][0], port, **labels)

    def plain(self, scope: Scope) -> float:
        """The number in base units. Raises ValueError where it is none."""
        if self.unit.fields:
            return size(self.terms[0][1].said(scope), self.unit.said(scope))
        times, per = _UNITS[self.unit.text]
        return self._sum(scope) * times / per if per > 1 else self._sum(scope) * times

    def _sum(self, scope: Scope) -> float:
        read = size if self.unit.text == "B" else number
        return sum(sign * read(words.said(scope)) for sign, words in self.terms)


class Age(NamedTuple):
    """A length of time: in the words of a device (``{up}``), or a number with its unit (``{n} s``, ``{n} ms``)."""

    words: TextTemplate
    amount: Amount | None

    @classmethod
    def of(cls, text: str) -> Age:
        """Reads it. Raises ValueError for what is none."""
        return cls(TextTemplate.of(text), Amount.of(text) if text.endswith((" s", " ms")) else None)

    def told(self, scope: Scope) -> str | float | None:
        """The words or the seconds; None for nothing, and for a number that is none."""
        if self.amount is None:
            return self.words.said(scope) or None
        try:
            return self.amount.plain(scope) if self.amount.there(scope) else None
        except ValueError:
            return None


def _compiled(text: str, info: ValidationInfo) -> regex.Pattern:
    return regex.regex_of_file(text.replace("{address}", ADDRESS), info)


def _known(name: str) -> str:
    if name not in BY_NAME:
        raise ValueError(f"there is no metric {name!r}: `soakwatch metrics` lists them")
    return name


Text = Annotated[TextTemplate, PlainValidator(lambda text: TextTemplate.of(str(text)))]
Length = Annotated[Age, PlainValidator(lambda text: Age.of(str(text)))]
Count = Annotated[Amount, PlainValidator(lambda text: Amount.of(str(text)))]
Pattern = Annotated[regex.Pattern, regex.compiled_by(_compiled)]
Metric = Annotated[str, AfterValidator(_known)]
EMPTY = TextTemplate("")


class TemplateModel(BaseModel):
    """A part of a file: no key that is unknown, and no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReadingTemplate(TemplateModel):
    """One reading: of which metric, how much, and its labels; ``port`` is the interface where ports may be left out."""

    metric: Metric
    of: Count
    labels: Mapping[str, Text] = {}
    port: Text | None = None

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it. A number of which a part was not there is not told."""
        if not self.of.there(scope):
            return
        labels = {name: words.said(scope) for name, words in self.labels.items()}
        port = None if self.port is None else self.port.said(scope) or None
        self.of.write(draft, self.metric, port, labels, scope)


class Dropped(TemplateModel):
    """A counter of drops, which is one of what was refused on purpose if its reason says so."""

    place: Text
    reason: Text
    count: Text

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it; a count that was not there, or of no reason, is not told."""
        reason = self.reason.said(scope)
        if not reason or not self.count.needs <= scope.keys():
            return
        metric = "system.forwarding.denied" if refused_on_purpose(reason) else "system.forwarding.dropped"
        draft.value(metric, self.count.said(scope), place=self.place.said(scope), reason=reason)


class Listed(TemplateModel):
    """A process of a list."""

    name: Text
    pid: Count | None = None
    cpu: Count | None = None
    memory: Count | None = None

    def write(self, draft: ParsedBuilder, scope: Scope, shown: object) -> None:
        """Takes it; a number that is none makes the line unknown, memory below zero is left out."""
        try:
            pid, cpu, memory = (
                each.plain(scope) if each is not None and each.there(scope) else None
                for each in (self.pid, self.cpu, self.memory)
            )
        except ValueError:
            draft.odd(str(shown)[:200])
            return
        if name := self.name.said(scope):
            holds = int(memory) if memory is not None and memory >= 0 else None
            draft.process(name, None if pid is None else int(pid), cpu, holds)
        else:
            draft.odd(str(shown)[:200])


class NotableTemplate(TemplateModel):
    """What is told once: a crash, a failover. ``key`` tells one from another; without one there is nothing to tell."""

    kind: str
    key: Text
    detail: Mapping[str, Text] = {}

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        detail = {name: words.said(scope) for name, words in self.detail.items()}
        if key := self.key.said(scope).strip():
            draft.notable(self.kind, key, **detail)


class Peer(TemplateModel):
    """A session with a peer: ``state`` is the device's word, ``context`` the VRF or interface, ``uptime`` how long it
    is up, or ``since`` when it came up in seconds since 1970; what is empty is not told."""

    protocol: str
    peer: Text
    state: Text
    context: Text = EMPTY
    uptime: Length | None = None
    since: Count | None = None
    flaps: Text = EMPTY
    prefixes: Text = EMPTY
    family: Text = EMPTY

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        draft.session(
            self.protocol,
            self.peer.said(scope),
            self.state.said(scope),
            self.context.said(scope),
            uptime=self.uptime and self.uptime.told(scope),
            flaps=self.flaps.said(scope),
            prefixes=self.prefixes.said(scope),
            family=self.family.said(scope),
            moment=self._moment(scope),
        )

    def _moment(self, scope: Scope) -> float | None:
        try:
            return self.since.plain(scope) if self.since is not None and self.since.there(scope) else None
        except ValueError:
            return None


class RedundancyTemplate(TemplateModel):
    """The part of this device in a group of VRRP or HSRP."""

    protocol: str
    group: Text
    state: Text
    interface: Text = EMPTY

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        draft.role(self.protocol, self.group.said(scope), self.state.said(scope), self.interface.said(scope))


class OutputTemplate(TemplateModel):
    """What a template writes: the words and numbers that it took, as facts, readings, processes and sessions."""

    facts: Mapping[str, Text] = {}
    uptime: Length | None = None
    values: list[ReadingTemplate] = []
    drop: Dropped | None = None
    once: NotableTemplate | None = None
    process: Listed | None = None
    peer: Peer | None = None
    role: RedundancyTemplate | None = None

    @property
    def fields(self) -> frozenset[str]:
        """The names of all words that it writes with."""
        return _fields(self)

    @cached_property
    def written(self) -> Sequence[ReadingTemplate | Dropped | NotableTemplate | Peer | RedundancyTemplate]:
        """What it writes beside facts and processes."""
        others = (self.drop, self.once, self.peer, self.role)
        return (*self.values, *(other for other in others if other is not None))

    def write(self, draft: ParsedBuilder, scope: Scope, shown: object) -> None:
        """Writes it; ``shown`` is what becomes unknown where it cannot be read."""
        for name, words in self.facts.items():
            draft.fact(name, words.said(scope))
        if self.uptime is not None and draft.uptime is None:
            draft.uptime = _uptime(self.uptime.told(scope))
        for each in self.written:
            each.write(draft, scope)
        if self.process is not None:
            self.process.write(draft, scope, shown)


def _fields(value: object) -> frozenset[str]:
    if isinstance(value, TextTemplate):
        return value.fields
    parts: Iterable[object] = ()
    if isinstance(value, BaseModel):
        parts = [part for name, part in value if name not in _CONDITIONS]
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    return frozenset().union(*(_fields(part) for part in parts))


def _uptime(told: str | float | None) -> Span | None:
    if isinstance(told, str):
        return length(told)
    return Span(told, 1) if told is not None and 0 <= told < _LONGEST_S else None
