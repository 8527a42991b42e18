"""Regular expressions for command lines, searched in time linear in the text whatever the expression: the agent has no
library for that, and ``re`` may take for ever.

An expression, parsed by Python, becomes an automaton that reads a text once (Thompson 1968); sets of its states are
made when they are met and kept. Classes are of ASCII, as those of RE2, which the other expressions of a plan have.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

try:
    from re import _constants as ops  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # before Python 3.11
    import sre_constants as ops
    import sre_parse as parser

_MAX_STATES = 10_000
_MAX_KEPT = 100_000  # numbers of states in the sets that are kept: some megabytes
_END, _LAST_LINE_FEED = "end", "last line feed"  # what may follow instead of a character
_BEGIN = "begin"
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_WORD = re.compile(r"\w", re.ASCII)
_States = FrozenSet[int]
_Holds = Callable[[str, str], bool]


def search_of(text: str) -> Callable[[str], bool]:
    """A function that says whether an expression is found in a text. Raises ValueError, in a sentence that begins with
    the expression, for one that cannot be had.

    >>> search_of("(a+)+$")("a" * 10_000 + "b"), search_of(r"java .*broker$")("java -jar broker")
    (False, True)
    >>> search_of("^(?!.*grep).*worm")("worm -d"), search_of("^(?!.*grep).*worm")("grep worm")
    (True, False)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            tree = list(parser.parse(text, re.ASCII))
            flags = re.compile(text, re.ASCII).flags
        except (re.error, RecursionError, OverflowError, FutureWarning) as error:
            raise ValueError(f"{text} is not a regular expression: {error}") from None
    try:
        return _search_of(tree, flags)
    except _UnlikeError as error:
        raise ValueError(f"{text} {error}") from None


def _search_of(tree: List[Any], flags: int) -> Callable[[str], bool]:
    never: Optional[Automaton] = None
    begins = tree[:1] == [(ops.AT, ops.AT_BEGINNING_STRING)] or (
        tree[:1] == [(ops.AT, ops.AT_BEGINNING)] and not flags & re.MULTILINE
    )
    if begins and len(tree) > 1 and tree[1][0] is ops.ASSERT_NOT and tree[1][1][0] > 0:
        never = Automaton(tree[1][1][1], flags, anywhere=False)
        del tree[1]
    whole = Automaton(tree, flags, anywhere=True)
    return whole.found if never is None else lambda words: not never.found(words) and whole.found(words)


class _UnlikeError(Exception):
    pass


class Automaton:
    """An expression as states: each reads a character, holds at a place, or leads to others. ``anywhere``: a match may
    begin at any place of the text, not only at its begin."""

    def __init__(self, tree: Any, flags: int, *, anywhere: bool) -> None:
        self._reads: Dict[int, Tuple[Callable[[str], object], int]] = {}
        self._holds: Dict[int, Tuple[_Holds, int]] = {}
        self._leads: Dict[int, List[int]] = {}
        self._count = 1
        self._anywhere = anywhere
        self._begin = self._sequence(tree, flags, 0)  # 0 is the state in which all of it matched
        self._kept = 0
        self._next: Dict[Tuple[_States, str, str], Optional[_States]] = {}

    def found(self, text: str) -> bool:
        """Whether it matches somewhere in a text, which is read once."""
        states: _States = frozenset((self._begin,))
        before, last = _BEGIN, len(text) - 1
        for index, char in enumerate(text):
            following = _LAST_LINE_FEED if char == "\n" and index == last else char
            after = self._step(states, before, following)
            if after is None:
                return True
            states, before = after, (_WORD.match(char) and "a") or ("\n" if char == "\n" else " ")
            if not states:
                return False
        return self._step(states, before, _END) is None

    def _step(self, states: _States, before: str, following: str) -> Optional[_States]:
        """The states behind the next character; None where all of it has matched before it."""
        key = states, before, following
        if key not in self._next:
            made = self._next[key] = self._made(states, before, following)
            self._kept += 1 + len(made or ())
            if self._kept > _MAX_KEPT:
                self._next.clear()
                self._kept = 0
            return made
        return self._next[key]

    def _made(self, states: _States, before: str, following: str) -> Optional[_States]:
        reached, waiting = set(states), list(states)
        while waiting:
            state = waiting.pop()
            more = self._leads.get(state, [])
            if state in self._holds:
                holds, to = self._holds[state]
                more = [to] if holds(before, following) else []
            waiting += [to for to in more if to not in reached]
            reached.update(more)
        if 0 in reached:
            return None
        if following is _END:
            return frozenset()
        char = "\n" if following is _LAST_LINE_FEED else following
        after = {to for state in reached if state in self._reads for read, to in (self._reads[state],) if read(char)}
        return frozenset(after | {self._begin} if self._anywhere else after)

    # --- states of the parts, from the last to the first ----------------------------------------------------------

    def _state(self) -> int:
        self._count += 1
        if self._count > _MAX_STATES:
            raise _UnlikeError(f"has more than {_MAX_STATES} states: repeat fewer times, or without a number (* or +)")
        return self._count

    def _leading(self, *to: int) -> int:
        state = self._state()
        self._leads[state] = list(to)
        return state

    def _sequence(self, tree: Any, flags: int, to: int) -> int:
        for op, of in reversed(list(tree)):
            to = self._part(op, of, flags, to)
        return to

    def _part(self, op: Any, of: Any, flags: int, to: int) -> int:
        if op in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN):
            state = self._state()
            self._reads[state] = re.compile(_single(op, of), flags & ~re.VERBOSE).fullmatch, to
            return state
        if op is ops.AT:
            state = self._state()
            self._holds[state] = _place(of, flags), to
            return state
        if op is ops.BRANCH:
            return self._leading(*(self._sequence(each, flags, to) for each in of[1]))
        if op is ops.SUBPATTERN:
            _, added, removed, tree = of
            return self._sequence(tree, (flags | added) & ~removed, to)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, repeated = of
            return self._repeated(int(least), None if most is ops.MAXREPEAT else int(most), repeated, flags, to)
        raise _UnlikeError(
            "has a look-around, back-reference, condition, atomic group or possessive repetition, which take more than "
            "linear time; only what a command line must not begin with may stand first: ^(?!...)"
        )

    def _repeated(self, least: int, most: Optional[int], tree: Any, flags: int, to: int) -> int:
        if most is None:
            again = self._leading(to)
            self._leads[again].append(self._sequence(tree, flags, again))
            to = again
        else:
            end = to
            for _ in range(most - least):
                to = self._leading(end, self._sequence(tree, flags, to))
        for _ in range(least):
            to = self._sequence(tree, flags, to)
        return to


def _single(op: Any, of: Any) -> str:
    """An expression for one character."""
    if op is ops.ANY:
        return "."
    if op is not ops.IN:
        return f"[{'^' if op is ops.NOT_LITERAL else ''}{_char(of)}]"
    parts = {
        ops.NEGATE: lambda _: "^",
        ops.LITERAL: _char,
        ops.RANGE: lambda ends: f"{_char(ends[0])}-{_char(ends[1])}",
        ops.CATEGORY: _CATEGORIES.__getitem__,
    }
    return f"[{''.join(parts[kind](what) for kind, what in of)}]"


def _char(code: int) -> str:
    return f"\\U{code:08x}"


def _place(at: Any, flags: int) -> _Holds:
    """Whether a place is where an expression asks for, by what stands before it and behind it."""
    ends = (_END, _LAST_LINE_FEED, "\n") if flags & re.MULTILINE else (_END, _LAST_LINE_FEED)
    begins = (_BEGIN, "\n") if flags & re.MULTILINE else (_BEGIN,)
    places: Dict[Any, _Holds] = {
        ops.AT_BEGINNING: lambda before, _: before in begins,
        ops.AT_BEGINNING_STRING: lambda before, _: before is _BEGIN,
        ops.AT_END: lambda _, behind: behind in ends,
        ops.AT_END_STRING: lambda _, behind: behind is _END,
        ops.AT_BOUNDARY: lambda before, behind: _is_word(before) != _is_word(behind),
        ops.AT_NON_BOUNDARY: lambda before, behind: _is_word(before) == _is_word(behind),
    }
    return places[at]


def _is_word(text: str) -> bool:
    return len(text) == 1 and _WORD.match(text) is not None
