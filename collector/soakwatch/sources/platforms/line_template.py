"""Line templates: the first template whose expression matches a line takes it.

A template keeps words for the lines behind it, and writes what it says (``template.Told``) with what it matched. In an
expression ``{address}`` is an address of IPv4 or IPv6; a long one begins with ``(?x)`` and is folded, for blanks do not
count in it then (``[ ]`` is one). A table whose columns move has a template with its head instead of an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import model_validator

from soakwatch.core.regex import Found
from soakwatch.core.validation import Several
from soakwatch.sources.platforms.output_template import OutputTemplate, Pattern, Scope, Text
from soakwatch.sources.platforms.parsed import ParsedBuilder

Rest = Literal["unknown", "ignored", "some"]
_COLUMNS = "columns of {}"


class LineTemplate(OutputTemplate):
    """One template. Its expression holds from the begin of a line (``match``), anywhere in it (``find``), or each time
    that it is there (``each``), where the words that are kept are those of ``when``. It keeps words for the lines
    behind it, and writes what it says. A line that it ``passes`` on is read by the templates behind it as well.

    ``head`` instead takes the head of a table, which has a word for each of its names (``cpu: 5sec|1sec``), and then
    the rows below it whose ``cells`` match: cells are parted by blanks, and the last has the rest of its line. A column
    that a system leaves out is ``optional``.
    """

    match: Pattern | None = None
    find: Pattern | None = None
    each: Pattern | None = None
    head: Mapping[str, Pattern] | None = None
    optional: Several[str] = []  # noqa: RUF012 - pydantic copies it
    cells: Mapping[str, Pattern] = {}
    when: Mapping[str, Several[str]] = {}
    keep: Mapping[str, Text] = {}
    passes: bool = False

    @model_validator(mode="after")
    def _one(self) -> LineTemplate:
        if sum(each is not None for each in (self.match, self.find, self.each, self.head)) != 1:
            raise ValueError(
                "a template has one of match (the begin of a line), find (in it), each (each time) and head (a table)"
            )
        return self

    @property
    def names(self) -> frozenset[str]:
        """The words that it takes of a line."""
        patterns = [pattern for pattern in (self.match, self.find, self.each) if pattern is not None]
        return frozenset(self.head or ()).union(*(pattern.groupindex for pattern in patterns))

    def take(self, draft: ParsedBuilder, line: str, kept: dict[str, str]) -> bool:
        """Writes what it says of a line; whether it takes it."""
        if not holds(self.when, kept):
            return False
        if self.head is not None and (columns := self._columns(self.head, line)):
            kept[_COLUMNS.format(*self.head)] = columns
            return True
        taken = False
        for scope in self._scopes(line, kept):
            kept.update({name: words.said(scope) for name, words in self.keep.items()})
            self.write(draft, scope, line)
            taken = True
        return taken

    def _scopes(self, line: str, kept: dict[str, str]) -> Iterator[Scope]:
        """The words of each time that something of a line is taken. Words that could have been there and are not are
        missing, whatever was kept under their names."""
        if self.head is not None:
            row = _row(line, kept.get(_COLUMNS.format(*self.head), ""))
            if row and all(pattern.match(row.get(name, "")) for name, pattern in self.cells.items()):
                yield {**kept, **row}
            return
        for match in self._matches(line):
            scope = dict(kept)
            for name, words in match.groupdict().items():
                if words is not None:
                    scope[name] = words
                else:
                    scope.pop(name, None)
            yield scope

    def _matches(self, line: str) -> Iterable[Found]:
        if self.each is not None:
            return self.each.finditer(line)
        found = self.match.match(line) if self.match is not None else None
        found = self.find.search(line) if self.find is not None else found
        return () if found is None else (found,)

    def _columns(self, head: Mapping[str, Pattern], line: str) -> str:
        """The names of the columns that a head has, parted by tabs; nothing for a line that is no head."""
        words = line.lower().split()
        columns = [next((name for name in head if head[name].fullmatch(word)), "") for word in words]
        return "\t".join(columns) if all(name in columns or name in self.optional for name in head) else ""


def _row(line: str, columns: str) -> Scope:
    """The cells of a row by the names of their columns; of two of a name the first. Nothing for another line."""
    names = columns.split("\t")
    cells = line.split(None, len(names) - 1)
    if not columns or len(cells) != len(names):
        return {}
    return {name: cell.strip() for name, cell in reversed(list(zip(names, cells, strict=True))) if name}


class Ending(OutputTemplate):
    """What is written behind the last line, of the words that were kept, where these are those of ``when``."""

    when: Mapping[str, Several[str]] = {}


def read_lines(
    draft: ParsedBuilder, text: str, templates: Sequence[LineTemplate], endings: Sequence[Ending], rest: Rest
) -> None:
    """What the templates make of a text. ``rest`` says whether lines that none takes are unknown, or of no interest,
    or (``some``) of no interest as long as others are known: then an answer of which nothing is known is unknown."""
    kept: dict[str, str] = {}
    known = False
    for line in draft.lines(text):
        if _taken(draft, line, kept, templates):
            known = True
        elif rest == "unknown":
            draft.odd(line)
    if rest == "some" and not known and text.strip():
        draft.odd(text.strip()[:200])
    for ending in endings:
        if holds(ending.when, kept):
            ending.write(draft, kept, "the end")


def _taken(draft: ParsedBuilder, line: str, kept: dict[str, str], templates: Sequence[LineTemplate]) -> bool:
    passed = False
    for template in templates:
        if template.take(draft, line, kept):
            if not template.passes:
                return True
            passed = True
    return passed


def holds(when: Mapping[str, Sequence[str]], kept: Scope) -> bool:
    """Whether words are what is asked of them; one that is not there is empty."""
    for name, words in when.items():  # noqa: SIM110 - done for each template of each line, where a generator is slow
        if kept.get(name, "") not in words:
            return False
    return True
