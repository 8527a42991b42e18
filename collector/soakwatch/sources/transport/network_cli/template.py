"""Line templates: what the lines of a command's output say, as data instead of a parser.

The first template whose expression matches a line takes it; a line that none takes is unknown, and counted. A template
keeps words for the lines behind it, and writes readings, facts, processes and what is told once with what it matched.
Text is written with ``{group}``; ``{group|words}`` stands for what was not there, ``{group:lower}`` for small letters.
In an expression ``{address}`` is an address of IPv4 or IPv6; a long one begins with ``(?x)`` and is folded, for blanks
do not count in it then (``[ ]`` is one).

TextFSM has the form (states, a template a line, an error for what is unknown); here a template says of which metric,
labels and unit a number is, so that no code stands between it and a sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainValidator, model_validator

from soakwatch.sources.drop_reasons import refused_on_purpose
from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder
from soakwatch.sources.transport.network_cli.units import ADDRESS, length, number
from soakwatch_model.metric import BY_NAME

Scope = Mapping[str, str]
_FIELD = re.compile(r"\{(\w+)(?::(lower|squash))?(?:\|([^}]*))?\}")
_SCALES = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_SIGNS = {"+": 1.0, "-": -1.0}


class Words(NamedTuple):
    """Text with fields.

    >>> Words.of("core {n}").said({"n": "3"}), Words.of("{table:lower|all}").said({"table": ""})
    ('core 3', 'all')
    """

    text: str
    fields: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Words:
        """Reads it. Raises ValueError for a bracket that is no field."""
        if "{" in _FIELD.sub("", text) or "}" in _FIELD.sub("", text):
            raise ValueError(
                f"{text!r} has a bracket that is no field: write {{name}}, {{name:lower}} or {{name|else}}"
            )
        return cls(text, frozenset(match[1] for match in _FIELD.finditer(text)))

    def said(self, scope: Scope) -> str:
        """The text with its fields filled in."""
        return _FIELD.sub(lambda match: _field(match, scope), self.text) if self.fields else self.text


def _field(match: re.Match[str], scope: Scope) -> str:
    words = scope.get(match[1], "")
    if match[2] == "lower":
        words = words.lower()
    elif match[2] == "squash":
        words = " ".join(words.lower().split())
    return words or match[3] or ""


class Amount(NamedTuple):
    """A number with its unit: ``{used} KiB``, ``{busy} %``, ``100 - {idle} - {iowait|0} %``, ``{n} {unit}``.

    A size whose unit is a field may have none there. Sums are not below zero.
    """

    terms: tuple[tuple[float, Words], ...]
    unit: Words

    @classmethod
    def of(cls, text: str) -> Amount:
        """Reads it. Raises ValueError for what is none."""
        parts = text.split()
        unit = parts.pop() if len(parts) % 2 == 0 else ""
        if not parts or (unit and unit != "%" and unit not in _SCALES and _FIELD.fullmatch(unit) is None):
            raise ValueError(
                f"{text!r} is no amount: write {{n}}, {{n}} %, {{n}} KiB, {{n}} {{unit}} or 100 - {{idle}} %"
            )
        signs = ["+", *parts[1::2]]
        if any(sign not in _SIGNS for sign in signs):
            raise ValueError(f"{text!r} is no amount: its parts are added (+) or taken away (-)")
        terms = zip(signs, parts[::2], strict=True)
        return cls(tuple((_SIGNS[sign], Words.of(part)) for sign, part in terms), Words.of(unit))

    def write(
        self, draft: ParsedBuilder, metric: str, port: str | None, labels: Mapping[str, str], scope: Scope
    ) -> None:
        """Takes the reading, or a fault where it is no number."""
        said: str | float = self.terms[0][1].said(scope)
        if len(self.terms) > 1:
            try:
                said = max(0.0, sum(sign * number(words.said(scope)) for sign, words in self.terms))
            except ValueError:
                said = " ".join(words.said(scope) for _, words in self.terms)
        if self.unit.text == "%":
            draft.share(metric, said, port, **labels)
        elif self.unit.fields:
            draft.size(metric, str(said), self.unit.said(scope), **labels)
        else:
            draft.value(metric, said, _SCALES.get(self.unit.text, 1), port, **labels)

    def plain(self, scope: Scope) -> float:
        """The number in base units. Raises ValueError where it is none."""
        total = sum(sign * number(words.said(scope)) for sign, words in self.terms)
        return total / 100 if self.unit.text == "%" else total * _SCALES.get(self.unit.text, 1)


def _compiled(text: object) -> re.Pattern[str]:
    try:
        return re.compile(str(text).replace("{address}", ADDRESS))
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None


def _known(name: str) -> str:
    if name not in BY_NAME:
        raise ValueError(f"there is no metric {name!r}: `soakwatch metrics` lists them")
    return name


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Text = Annotated[Words, PlainValidator(lambda text: Words.of(str(text)))]
Count = Annotated[Amount, PlainValidator(lambda text: Amount.of(str(text)))]
Pattern = Annotated[re.Pattern[str], PlainValidator(_compiled)]
Metric = Annotated[str, AfterValidator(_known)]
Texts = Annotated[list[str], BeforeValidator(_listed)]
Metrics = Annotated[list[Metric], BeforeValidator(_listed)]
EMPTY = Words("", frozenset())


class Shape(BaseModel):
    """A part of a file: no key that is unknown, and no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reading(Shape):
    """One reading: of which metric, how much, and its labels; ``port`` is the interface where ports may be left out."""

    metric: Metric
    of: Count
    labels: Mapping[str, Text] = {}
    port: Text | None = None

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        labels = {name: words.said(scope) for name, words in self.labels.items()}
        port = None if self.port is None else self.port.said(scope) or None
        self.of.write(draft, self.metric, port, labels, scope)


class Dropped(Shape):
    """A counter of drops, which is one of what was refused on purpose if its reason says so."""

    place: Text
    reason: Text
    count: Text

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        reason = self.reason.said(scope)
        metric = "system.forwarding.denied" if refused_on_purpose(reason) else "system.forwarding.dropped"
        draft.value(metric, self.count.said(scope), place=self.place.said(scope), reason=reason)


class Listed(Shape):
    """A process of a list."""

    name: Text
    pid: Text | None = None
    cpu: Count | None = None
    memory: Count | None = None

    def write(self, draft: ParsedBuilder, scope: Scope, line: str) -> None:
        """Takes it; a number that is none makes the line unknown."""
        try:
            pid = None if self.pid is None else int(number(self.pid.said(scope)))
            cpu = None if self.cpu is None else self.cpu.plain(scope)
            memory = None if self.memory is None else int(self.memory.plain(scope))
        except ValueError:
            draft.odd(line)
            return
        draft.process(self.name.said(scope), pid, cpu, memory)


class Once(Shape):
    """What is told once: a crash, a failover. ``key`` tells one from another."""

    kind: str
    key: Text
    detail: Mapping[str, Text] = {}

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        detail = {name: words.said(scope) for name, words in self.detail.items()}
        draft.notable(self.kind, self.key.said(scope), **detail)


class Peer(Shape):
    """A session with a peer: ``state`` is the device's word, ``context`` the VRF or interface; what is empty is not
    told."""

    protocol: str
    peer: Text
    state: Text
    context: Text = EMPTY
    uptime: Text = EMPTY
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
            uptime=self.uptime.said(scope) or None,
            flaps=self.flaps.said(scope) or None,
            prefixes=self.prefixes.said(scope) or None,
            family=self.family.said(scope),
        )


class Part(Shape):
    """The part of this device in a group of VRRP or HSRP."""

    protocol: str
    group: Text
    state: Text
    interface: Text = EMPTY

    def write(self, draft: ParsedBuilder, scope: Scope) -> None:
        """Takes it."""
        draft.role(self.protocol, self.group.said(scope), self.state.said(scope), self.interface.said(scope))


class Line(Shape):
    """One template. Its expression holds from the begin of a line (``match``), anywhere in it (``find``), or each time
    that it is there (``each``), where the words that are kept are those of ``when``. It keeps words for the lines
    behind it, and writes what it says."""

    match: Pattern | None = None
    find: Pattern | None = None
    each: Pattern | None = None
    when: Mapping[str, Texts] = {}
    keep: Mapping[str, Text] = {}
    facts: Mapping[str, Text] = {}
    uptime: Text | None = None
    values: list[Reading] = []
    drop: Dropped | None = None
    once: Once | None = None
    process: Listed | None = None
    peer: Peer | None = None
    role: Part | None = None

    @model_validator(mode="after")
    def _one(self) -> Line:
        if sum(each is not None for each in (self.match, self.find, self.each)) != 1:
            raise ValueError("a template has one of match (the begin of a line), find (in it) and each (each time)")
        return self

    @cached_property
    def written(self) -> Sequence[Reading | Dropped | Once | Peer | Part]:
        """What it writes beside facts and processes."""
        others = (self.drop, self.once, self.peer, self.role)
        return (*self.values, *(other for other in others if other is not None))

    def matches(self, line: str, kept: Scope) -> Iterator[re.Match[str]]:
        """What it takes of a line; nothing where it takes none of it."""
        if any(kept.get(name, "") not in words for name, words in self.when.items()):
            return
        if self.each is not None:
            yield from self.each.finditer(line)
            return
        found = self.find.search(line) if self.find is not None else None
        found = self.match.match(line) if self.match is not None else found
        if found is not None:
            yield found

    def take(self, draft: ParsedBuilder, kept: dict[str, str], match: re.Match[str]) -> None:
        """Writes what it says."""
        scope = {**kept, **{name: words or "" for name, words in match.groupdict().items()}}
        kept.update({name: words.said(scope) for name, words in self.keep.items()})
        for name, words in self.facts.items():
            draft.fact(name, words.said(scope))
        if self.uptime is not None:
            draft.uptime = draft.uptime or length(self.uptime.said(scope))
        for each in self.written:
            each.write(draft, scope)
        if self.process is not None:
            self.process.write(draft, scope, match.string)


class Template(NamedTuple):
    """The templates of one output, which read it as a parser does. ``whole``: its list of processes, if there is one,
    has all of them. ``rest`` says whether lines that no template takes are unknown or of no interest."""

    lines: Sequence[Line]
    whole: bool = False
    rest: Literal["unknown", "ignored"] = "unknown"

    def read(self, text: str) -> Parsed:
        """What was found."""
        draft, kept = ParsedBuilder(), dict[str, str]()
        for line in draft.lines(text):
            if not any(_takes(template, line, draft, kept) for template in self.lines) and self.rest == "unknown":
                draft.odd(line)
        draft.whole = self.whole and bool(draft.processes)
        return draft.done()


def _takes(template: Line, line: str, draft: ParsedBuilder, kept: dict[str, str]) -> bool:
    taken = False
    for match in template.matches(line, kept):
        template.take(draft, kept, match)
        taken = True
    return taken
