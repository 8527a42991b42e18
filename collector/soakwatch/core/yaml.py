"""The plan's syntax: YAML as plain data, with the line and column of every key and value.

Without YAML 1.1's traps: ``on``, ``off``, ``yes``, ``no`` and ``1:30`` are text, ``08`` is 8, a timestamp is text, keys
are text as written. Duplicate keys, tags and unbounded aliases are refused. A merge key (``<<: *anchor``) adds the
anchor's keys that are not written out, with their places there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import yaml

from soakwatch.core.errors import PlanError

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""The data of a plan."""
Path = tuple[str | int, ...]
"""Path of a value: keys and list positions from the top."""

MAX_BYTES = 4_000_000
MAX_NODES = 200_000
MAX_DEPTH = 40

_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # escapes in quotes can produce these
_PLAIN = "plain"
_STR = "tag:yaml.org,2002:str"
_LIST = "tag:yaml.org,2002:seq"
_DICT = "tag:yaml.org,2002:map"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """An error at a position; ``line`` and ``column`` count from 1, 0 if there is none. ``origin`` is its file if it is
    not the document's."""

    line: int
    column: int
    text: str
    origin: str = ""

    def sentence(self, origin: str) -> str:
        """``plan.yaml:14:7: text``."""
        file = self.origin or origin
        return f"{file}:{self.line}:{self.column}: {self.text}" if self.line else f"{file}: {self.text}"


def plan_error(origin: str, problems: list[Problem]) -> PlanError:
    """One error for all problems of a plan, in order of place."""
    return PlanError(*(problem.sentence(origin) for problem in sorted(set(problems))))


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data with places; ``origin`` is the file's name for errors, ``origins`` those of values (and all within
    them) from other files."""

    origin: str
    data: Plain
    values: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    keys: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    changed: Mapping[Path, str] = field(default_factory=dict)
    """The text of numbers that ``value_name`` would write differently (``7.10``, ``7.0``, ``08``)."""
    origins: Mapping[Path, str] = field(default_factory=dict)

    def position(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Line and column of the value (or key) at ``path``, else of the nearest enclosing one; (0, 0) if none."""
        return self._place(path, key=key)[1]

    def _place(self, path: Path, *, key: bool) -> tuple[Path, tuple[int, int]]:
        if key and path in self.keys:
            return path, self.keys[path]
        for length in range(len(path), -1, -1):
            if path[:length] in self.values:
                return path[:length], self.values[path[:length]]
        return (), (0, 0)

    def _origin(self, path: Path) -> str:
        inner = (path[:length] for length in range(len(path), -1, -1)) if self.origins else ()
        return next((self.origins[part] for part in inner if part in self.origins), "")

    def where(self, path: Path, *, key: bool = False) -> str:
        """``plan.yaml:14:7``, or only the origin without a place."""
        place, (line, column) = self._place(path, key=key)
        origin = self._origin(place) or self.origin
        return f"{origin}:{line}:{column}" if line else origin

    def problem(self, path: Path, text: str, *, key: bool = False) -> Problem:
        """A problem at ``path``."""
        place, (line, column) = self._place(path, key=key)
        return Problem(line, column, text, self._origin(place))


def placeless(data: Plain, origin: str) -> Document:
    """Data from no file: problems name only the origin."""
    values: dict[Path, tuple[int, int]] = {}
    left: list[tuple[Path, Plain]] = [((), data)]
    while left:
        path, value = left.pop()
        values[path] = (0, 0)
        if isinstance(value, dict):
            left += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            left += [((*path, index), inner) for index, inner in enumerate(value)]
    return Document(origin, data, values)


def read_text(file: FilePath) -> str:
    """The text of a plan file. Raises PlanError in one sentence if it cannot be read."""
    try:
        if file.is_dir():
            raise PlanError(f"{file} is a folder: name the plan file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise PlanError(f"{file}: cannot be read: {error.strerror or type(error).__name__}") from None
    if len(raw) > MAX_BYTES:
        raise PlanError(f"{file}: has more than {MAX_BYTES:,} bytes: that is not a plan")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8-sig")
        line, column = good.count("\n") + 1, len(good) - (good.rfind("\n") + 1) + 1
        raise PlanError(f"{file}:{line}:{column}: is not UTF-8: save the plan as UTF-8") from None


def parse(text: str, origin: str) -> Document:
    """Parses YAML to plain data with places.

    Raises PlanError: the first syntax error, or every duplicate key and tag.
    """
    try:
        loader = _Nodes(text)
    except yaml.reader.ReaderError as error:
        good = text[: error.position]
        line, column = good.count("\n") + 1, len(good) - (good.rfind("\n") + 1) + 1
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in a plan: remove it"
        raise plan_error(origin, [Problem(line, column, message)]) from None
    try:
        root = loader.get_single_node()
    except _TooDeepError as error:
        message = f"is nested more than {MAX_DEPTH} deep: that is not a plan"
        raise plan_error(origin, [Problem(error.line, error.column, message)]) from None
    except yaml.MarkedYAMLError as error:
        raise plan_error(origin, [_syntax(error)]) from None
    except (ValueError, OverflowError):  # PyYAML calls chr() with a number that is no character
        message = "an escape in quotes (\\U…) names no character: the last one is \\U0010FFFF"
        raise plan_error(origin, [Problem(loader.line + 1, loader.column + 1, message)]) from None
    finally:
        loader.dispose()
    if root is None:
        raise PlanError(f"{origin}: is empty: 'soakwatch init' writes a plan to start from")
    walk = _Walk()
    data = walk.value(root, (), ())
    if walk.problems:
        raise plan_error(origin, walk.problems)
    return Document(origin, data, walk.values, walk.keys, walk.changed)


class _TooDeepError(Exception):
    def __init__(self, mark: yaml.Mark) -> None:
        super().__init__("too deep")
        self.line, self.column = mark.line + 1, mark.column + 1


class _Nodes(yaml.SafeLoader):
    """Composes nodes only; unquoted scalars get the tag ``plain``: ``scalar`` decides what they mean."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def resolve(self, kind: type[yaml.Node], value: object, implicit: object) -> str:  # noqa: ARG002
        if kind is yaml.ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else _STR
        return _DICT if kind is yaml.MappingNode else _LIST

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeepError(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _syntax(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    message = error.problem or error.context or ""
    if "'\\t'" in message:
        return Problem(line, column, "a tab cannot indent or separate here: use spaces")
    if "undefined alias" in message:
        return Problem(line, column, "an alias (*) has no anchor (&) before it: quote text that starts with *")
    if "but found another document" in message or "single document" in (error.context or ""):
        return Problem(line, column, "a second document starts here: a plan is one document")
    for sign, sentence in _SYNTAX.items():
        if sign in message:
            return Problem(line, column, sentence)
    return Problem(line, column, "this is not YAML: " + message.replace("\n", " "))


_SYNTAX = {
    "mapping values are not allowed": "a second ':' in one line: put the text in quotes, or start a new line",
    "could not find expected ':'": "a ':' is missing after the key, or the line is indented wrongly",
    "expected <block end>": "the line is indented differently from its neighbours",
    "expected ',' or '}'": "a ',' or '}' is missing",
    "expected ',' or ']'": "a ',' or ']' is missing",
    "found unexpected end of stream": "a quote or bracket is never closed",
    "cannot start any token": "text cannot start with this character: put it in quotes",
    "expected the node content": "a value is missing here, or a bracket is never closed",
}


@dataclass(slots=True)
class _Walk:
    """Turns nodes into data, notes places and problems, and limits what aliases unfold to."""

    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    changed: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    count: int = 0
    seen: set[int] = field(default_factory=set)  # the nodes that stand in the file

    def value(self, node: yaml.Node, path: Path, above: tuple[int, ...]) -> Plain:
        if self._is_too_much(node):
            return None
        if id(node) in above:
            self._report(node, "an anchor contains itself: remove the alias")
            return None
        self.values[path] = _mark(node)
        if isinstance(node, yaml.MappingNode):
            if node.tag != _DICT:
                self._report(node, "a tag (!) has no meaning in a plan: remove it")
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, yaml.SequenceNode):
            if node.tag != _LIST:
                self._report(node, "a tag (!) has no meaning in a plan: remove it")
            return [self.value(item, (*path, i), (*above, id(node))) for i, item in enumerate(node.value)]
        if node.tag not in {_PLAIN, _STR}:
            self._report(node, "a tag (!) has no meaning in a plan: remove it, or quote text that starts with !")
            return None
        odd = _ODD.search(node.value)
        if odd is not None:
            self._report(node, f"the character U+{ord(odd[0]):04X} is not allowed in a plan: remove it")
            return None
        if node.tag == _STR:
            return str(node.value)
        plain = scalar(node.value)
        if isinstance(plain, int | float) and not isinstance(plain, bool) and value_name(plain) != node.value:
            self.changed[path] = str(node.value)
        return plain

    def _is_too_much(self, node: yaml.Node) -> bool:
        self.count += 1
        self.seen.add(id(node))
        if self.count == MAX_NODES + 1:
            by_alias = self.count - len(self.seen)
            remedy = f"{by_alias:,} of them by aliases: use fewer aliases" if by_alias else "make several plans of it"
            self._report(node, f"the plan has more than {MAX_NODES:,} values{', ' if by_alias else ': '}{remedy}")
        return self.count > MAX_NODES

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> Plain:
        mapping: dict[str, Plain] = {}
        self._fill(mapping, node, path, above, frozenset())
        return mapping

    def _fill(
        self,
        mapping: dict[str, Plain],
        node: yaml.MappingNode,
        path: Path,
        above: tuple[int, ...],
        written: frozenset[str],
    ) -> None:
        """Adds the keys of a node to a mapping, except those already ``written`` by the mapping it is merged into."""
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, "a key must be a word, not a list or keys and values")
                continue
            key = str(key_node.value)
            if _ODD.search(key) is not None:
                self._report(key_node, "control characters are not allowed in keys: remove them")
                continue
            if key == "<<" and key_node.tag == _PLAIN:
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                continue
            if key in written:
                continue
            if key in mapping:
                line = self.keys[(*path, key)][0]
                self._report(key_node, f"the key {key!r} is given twice (first in line {line}): remove one")
                continue
            self.keys[(*path, key)] = _mark(key_node)
            mapping[key] = self.value(value_node, (*path, key), above)
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                self._report(other, "a merge key (<<) takes keys and values of an anchor, such as <<: *common")
            elif id(other) in above:
                self._report(other, "an anchor contains itself: remove the alias")
            elif not self._is_too_much(other):  # counts merges too, even if all their keys are written out
                self._fill(mapping, other, path, (*above, id(other)), frozenset(mapping))

    def _report(self, node: yaml.Node, text: str) -> None:
        self.problems.append(Problem(*_mark(node), text))


def _mark(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def scalar(text: str) -> Plain:
    """The value of an unquoted word.

    >>> [scalar(word) for word in ("true", "on", "1:30", "08", "1.5", "~", "24h")]
    [True, 'on', '1:30', 8, 1.5, None, '24h']
    """
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def value_name(value: Plain) -> str:
    """A scalar value as a plan writes it.

    >>> [value_name(value) for value in ("20%", 64, 1.5, True)]
    ['20%', '64', '1.5', 'true']
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)


def dump(data: Plain) -> str:
    """Plain data as YAML that ``parse`` reads back to equal data; comments are lost."""
    text: str = yaml.dump(data, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Writer(yaml.SafeDumper):
    """Quotes every text that is not clearly a word, so that any YAML reader reads text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - equal lists are written out twice
        return True


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*|[0-9.]+[a-z]+")
_NOT_WORDS = {"true", "false", "null", "on", "off", "yes", "no", "y", "n", "nan", "inf"}


def _write_text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _WORD.fullmatch(text) is not None and text.lower() not in _NOT_WORDS
    return writer.represent_scalar(_STR, text, style=None if plain else '"')


_Writer.add_representer(str, _write_text)
