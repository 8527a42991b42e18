r"""Regular expressions: those of users run by RE2, in linear time; those that come with Soakwatch by ``re``.

A user's expression is one of Python's that RE2 has as well, with the same meaning, but that ``\d``, ``\w``, ``\s`` and
``\b`` are of ASCII. Look-around, back-references, conditions, atomic and possessive repetition are refused; only
``^(?!...)``, what the text must not begin with, is looked for by itself.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, NamedTuple, Protocol

from pydantic import GetPydanticSchema, ValidationInfo
from pydantic_core import core_schema

_MAX_LENGTH = 1000
_MAX_STATES = 10_000
"""States of a compiled expression, more than any of the profiles has. Each is looked at once at most for each byte of a
text: 64 kB take a few seconds at the worst. A letter is one, a dot eight."""
_MAX_MEM = 2 << 20
"""Bytes of a compiled expression with what RE2 remembers of its states."""
_FLAGS = re.compile(r"\(\?([aimsx]+)\)")
_TOKEN = re.compile(
    r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-7]{3}|[1-9][0-9]?|.)|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\(\?(?:#[^)]*\)|<?[=!]|>|\(|P=)|\{,[0-9]*\}|[*+?]\+|.",
    re.DOTALL,
)
_LOOSE = re.compile(rf"\s+|#[^\n]*|{_TOKEN.pattern}", re.DOTALL)  # where (?x) stands before
_IN_SET = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|.", re.DOTALL)
_BESIDE = "write the text that stands there, with ( ) around the part that counts"
_OTHERWISE = {
    "(?=": f"a look-ahead, (?=: {_BESIDE}",
    "(?<=": f"a look-behind, (?<=: {_BESIDE}",
    "(?!": "a look-ahead, (?!: write what may stand there, such as [^;], or ^(?!...) at the begin of the expression",
    "(?<!": "a look-behind, (?<!: write what may stand there, such as (?:^|[^;])",
    "(?P=": "a back-reference, (?P=: write the text itself",
    "(?(": "a condition, (?(: write both cases, parted by |",
    "(?>": "an atomic group, (?>: write (?: instead",
    "*+": "a possessive repetition, *+: write * instead",
    "++": "a possessive repetition, ++: write + instead",
    "?+": "a possessive repetition, ?+: write ? instead",
}
"""What RE2 does not have, by its first characters, and how it is written without."""


class Found(Protocol):
    """A match, as ``re.Match`` has it."""

    def __getitem__(self, group: int | str, /) -> str: ...
    def groupdict(self) -> dict[str, str | None]: ...
    def start(self) -> int: ...


class Pattern(Protocol):
    """A compiled expression, ``re.Pattern[str]`` or that of a user."""

    @property
    def pattern(self) -> str: ...
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> Mapping[str, int]: ...
    def search(self, text: str, /) -> Found | None: ...
    def match(self, text: str, /) -> Found | None: ...
    def fullmatch(self, text: str, /) -> Found | None: ...
    def finditer(self, text: str, /) -> Iterator[Found]: ...


class UserPattern:
    """A user's expression, with the functions of ``re.Pattern`` that are used of it."""

    __slots__ = ("_compiled", "_ends", "_flags", "_never", "_pattern")

    def __init__(self, pattern: str, flags: str, compiled: Pattern, never: Pattern | None, *, ends: bool) -> None:
        self._pattern, self._flags, self._compiled, self._never, self._ends = pattern, flags, compiled, never, ends

    @property
    def pattern(self) -> str:
        """The expression as it was written."""
        return self._pattern

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return self._compiled.groups

    @property
    def groupindex(self) -> Mapping[str, int]:
        """The numbers of its named groups."""
        return self._compiled.groupindex

    def search(self, text: str, /) -> Found | None:
        """The first match in a text."""
        return self._first(self._compiled.search, text)

    def match(self, text: str, /) -> Found | None:
        """The match at the begin of a text."""
        return self._first(self._compiled.match, text)

    def fullmatch(self, text: str, /) -> Found | None:
        """The match of a whole text."""
        text = _encodable(text)
        return None if self._begins_wrong(text) else self._compiled.fullmatch(text)

    def finditer(self, text: str, /) -> Iterator[Found]:
        """Every match in a text, one behind the other."""
        text = _encodable(text)
        return iter(()) if self._begins_wrong(text) else self._compiled.finditer(text)

    def _begins_wrong(self, text: str) -> bool:
        return self._never is not None and self._never.match(text) is not None

    def _first(self, look: Callable[[str], Found | None], text: str) -> Found | None:
        """What Python finds, whose ``$`` also matches before a line feed that ends the text; that of RE2 does not."""
        text = _encodable(text)
        if self._begins_wrong(text):
            return None
        found = look(text)
        if not (self._ends and text.endswith("\n")):
            return found
        before = look(text[:-1])
        return before if found is None or (before is not None and before.start() < found.start()) else found

    def __reduce__(self) -> tuple[Callable[..., Pattern], tuple[str, str, str]]:
        return user_regex, (self._pattern, "", self._flags)


def user_regex(text: str, name: str = "", flags: str = "") -> Pattern:
    r"""The compiled expression of a user; ``name`` is the key it was given for, ``flags`` are letters as in ``(?im)``.
    Raises ValueError, in a sentence that says how to write what it must not have.

    >>> user_regex("sa_(up|down)").groups, user_regex("(a+)+$").search("a" * 100_000 + "b")
    (1, None)
    >>> user_regex("[[a]", "match")
    Traceback (most recent call last):
    ValueError: match '[[a]' is not a regular expression: possible nested set at position 1: put a backslash before it
    >>> user_regex(r"(?P<a>.)(?P=a)")
    Traceback (most recent call last):
    ValueError: '(?P<a>.)(?P=a)' has a back-reference, (?P=: write the text itself
    """
    own_regex(text, name, flags)
    said = _said(text, name)
    import re2  # 4 ms, and most plans have no expression

    options = re2.Options()
    options.log_errors, options.max_mem = False, _MAX_MEM
    try:
        like = _of_re2(text, multiline="m" in flags)
        compiled = re2.compile(f"(?{flags}){like.words}" if flags else like.words, options)
        never = user_regex(like.never, name, flags) if like.never else None
    except _UnlikeError as unlike:
        raise ValueError(f"{said} has {unlike}") from None
    except UnicodeEncodeError:
        raise ValueError(f"{said} is not a regular expression: it has half of a character") from None
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace")
        raise ValueError(f"{said} is not a regular expression of RE2, which runs in linear time: {why}") from None
    if never is not None and never.groups:
        raise ValueError(f"{said} has a group in its look-ahead, which takes no part in a match: write (?: there")
    if compiled.programsize > _MAX_STATES:
        raise ValueError(
            f"{said} has {compiled.programsize} states, and {_MAX_STATES} is the limit: repeat fewer times, or "
            "without a number (* or +)"
        )
    return UserPattern(text, flags, compiled, never, ends=like.ends)


def own_regex(text: str, name: str = "", flags: str = "") -> Pattern:
    """The same of an expression that comes with Soakwatch, which may have all that Python has.

    Also refuses a bare bracket, ``--``, ``&&``, ``~~`` or ``||`` in a set (``[[:alpha:]]``): Python takes it literally
    today, warns on standard error, and plans to change its meaning.
    """
    said = _said(text, name)
    if len(text) > _MAX_LENGTH:
        raise ValueError(
            f"{name or 'a regular expression'} has more than {_MAX_LENGTH} characters: write a shorter one"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(text, re.RegexFlag(sum(re.RegexFlag[flag.upper()] for flag in flags)))
        except FutureWarning as warning:
            words = str(warning)
            raise ValueError(
                f"{said} is not a regular expression: {words[:1].lower()}{words[1:]}: put a backslash before it"
            ) from None
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{said} is not a regular expression: {error}") from None


SHIPPED = {"shipped": True}
"""The context in which pydantic reads a file that comes with Soakwatch; any other one is a user's."""


def regex_of_file(text: str, info: ValidationInfo, flags: str = "") -> Pattern:
    """An expression of a file that pydantic reads, compiled as that of a user but where the file is ``SHIPPED``.
    Raises ValueError."""
    return (own_regex if info.context == SHIPPED else user_regex)(text, "", flags)


def _any_case(text: str, info: ValidationInfo) -> Pattern:
    return regex_of_file(text, info, "i")


def compiled_by(compiles: Callable[[str, ValidationInfo], Pattern]) -> GetPydanticSchema:
    """A key that is a text, of which ``compiles`` makes an expression."""
    return GetPydanticSchema(lambda _, of: core_schema.with_info_after_validator_function(compiles, of(str)))


Regex = Annotated[Pattern, compiled_by(regex_of_file)]
"""A key that is a regular expression."""
AnyCase = Annotated[Pattern, compiled_by(_any_case)]
"""One that is found in any case."""


class _UnlikeError(Exception):
    pass


class _Like(NamedTuple):
    """An expression as RE2 writes it, whether it has a ``$``, and what a text that it matches does not begin with."""

    words: str
    ends: bool
    never: str


def _of_re2(text: str, *, multiline: bool) -> _Like:
    """The same expression for RE2. Raises _UnlikeError for what RE2 has not."""
    head = _FLAGS.match(text)
    flags = head[1] if head else ""
    plain = "".join(sorted({*flags} - {"a", "x"}))
    begin = f"(?{plain})" if plain else ""
    parts, never = list[str](), list[str]()
    by_line = multiline or "m" in flags
    depth, alternatives, ends, negated = 0, False, False, False
    for match in (_LOOSE if "x" in flags else _TOKEN).finditer(text, head.end() if head else 0):
        item = match[0]
        if item.startswith("(?#") or ("x" in flags and (item[0] == "#" or item.isspace())):
            continue
        if item == "(?!" and not never and (parts == [r"\A"] or (parts == ["^"] and not by_line)):
            negated, depth = True, 1
            continue
        if item in _OTHERWISE:
            raise _UnlikeError(_OTHERWISE[item])
        depth += (item == "(") - (item == ")")
        if negated and not depth:
            if not never:
                raise _UnlikeError(_OTHERWISE["(?!"])
            negated = False
            continue
        alternatives = alternatives or (item == "|" and not depth)
        ends = ends or item == "$"
        (never if negated else parts).append(_item(item))
    if never and alternatives:
        raise _UnlikeError(_OTHERWISE["(?!"])
    return _Like(begin + "".join(parts), ends, begin + "".join(never) if never else "")


def _item(item: str) -> str:
    """One item of an expression, a character, an escape or a set, as RE2 writes it. Raises _UnlikeError."""
    if item[0] == "\\":
        if item[1] in "123456789" and len(item) < 4:
            raise _UnlikeError(f"a back-reference, {item}: write the text itself")
        return r"\z" if item == r"\Z" else _escape(item)
    if item[0] == "[" and len(item) > 1:
        return "[" + "".join(map(_in_set, _IN_SET.findall(item[1:-1]))) + "]"
    return "{0" + item[1:] if item.startswith("{,") else item


def _in_set(item: str) -> str:
    if item[0] == "\\":
        return r"\x08" if item == r"\b" else _escape(item)
    return rf"\{item}" if item == "[" else item


def _escape(item: str) -> str:
    if item[1] in "uU":
        return rf"\x{{{item[2:]}}}"
    return item[1:] if item == r"\_" or not item.isascii() else item


def _encodable(text: str) -> str:
    """The text, with ? for halves of characters, which UTF-8 has not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _said(text: str, name: str) -> str:
    return f"{name} {text!r}" if name else repr(text)
