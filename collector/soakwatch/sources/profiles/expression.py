"""Arithmetic over the columns of a row: names, numbers, + - * /, brackets and a few functions; nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch.core.suggest import hint
from soakwatch.sources.profiles.value import Number

Values = Mapping[str, Number | None]
"""What each name is in one row; None or absent where the device has no such value."""
Run = Callable[[Values], Number]

MAX_CHARACTERS = 400
SECONDS = "seconds"


class MissingError(Exception):
    """A name without a value: the expression has none."""


class UndefinedError(Exception):
    """Values are there, but the arithmetic has no result (a division by zero): a sentence."""


@dataclass(frozen=True, slots=True)
class First:
    """One ``first(…)`` of an expression: where it stands, and its alternatives."""

    node: ast.Call
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, parsed: the names that it reads, and how it is worked out.

    ``plain`` says that it is one name, whose value then stays what it is (an integer counter, a text to match).
    ``run`` raises MissingError and UndefinedError. ``firsts`` are its choices, those within others before them.
    """

    text: str
    names: tuple[str, ...]
    plain: bool
    run: Run
    tree: ast.expr
    firsts: tuple[First, ...] = ()

    def picks(self, there: Values) -> tuple[int, ...]:
        """Of each ``first(…)`` the alternative that a device has, by what is there of its names."""
        return tuple(_pick(first.runs, there) for first in self.firsts)

    def fixed(self, picks: tuple[int, ...]) -> Expression:
        """This expression with its choices made. A name that was chosen and is missing later is missing: no other is
        read in its place.

        >>> choice = parse("size - first(free, 0)", {"size", "free"})
        >>> choice.fixed(choice.picks({"size": 9, "free": 2})).names, choice.fixed(choice.picks({"size": 9})).names
        (('size', 'free'), ('size',))
        """
        built = _Compilation(
            set(self.names), {id(first.node): pick for first, pick in zip(self.firsts, picks, strict=True)}
        )
        run = _compile(self.tree, built)
        return Expression(self.text, tuple(built.names), self.plain, run, self.tree)


@dataclass(slots=True)
class _Compilation:
    """An expression under way: the names that it may and does read, its choices, and those that are made already."""

    known: set[str]
    picked: Mapping[int, int] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    firsts: list[First] = field(default_factory=list)


def parse(words: str, known: Iterable[str]) -> Expression:
    """The expression of a text over the names in ``known``. Raises ValueError with a sentence.

    >>> parse("size * unit - free", {"size", "unit", "free"}).run({"size": 10, "unit": 4, "free": 8})
    32
    """
    stripped, known = words.strip(), set(known)
    if stripped in known:
        return Expression(stripped, (stripped,), plain=True, run=_name(stripped), tree=ast.Name(stripped, ast.Load()))
    if len(stripped) > MAX_CHARACTERS:
        raise ValueError(f"has more than {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"{stripped!r} is neither a name of this group nor arithmetic (names, numbers, + - * / ( ), "
            f"{', '.join(sorted(FUNCTIONS))})"
        ) from None
    built = _Compilation(known)
    run = _compile(tree, built)
    return Expression(stripped, tuple(built.names), plain=False, run=run, tree=tree, firsts=tuple(built.firsts))


def _compile(node: ast.expr, built: _Compilation) -> Run:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float) or not math.isfinite(node.value):
            raise ValueError(f"{node.value!r} is not a number")
        return _constant(node.value)
    if isinstance(node, ast.Name):
        if node.id not in built.known:
            raise ValueError(f"unknown name {node.id!r}{hint(node.id, built.known)}")
        built.names[node.id] = None
        return _name(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _binary(_OPERATORS[type(node.op)], _compile(node.left, built), _compile(node.right, built))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _compile(node.operand, built)
        return lambda values: -inner(values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if id(node) in built.picked:
            return _compile(node.args[built.picked[id(node)]], built)
        arguments = [_compile(argument, built) for argument in node.args]
        if node.func.id == "first":
            built.firsts.append(First(node, tuple(arguments)))
        if node.func.id in _THRESHOLDS and len(arguments) % 3:
            raise ValueError(f"{node.func.id}() takes severity, relation and value of each threshold")
        return _call(node.func.id, arguments)
    raise ValueError("only names, numbers, + - * / ( ) and functions are allowed in a value")


def _constant(value: Number) -> Run:
    return lambda _: value


def _name(name: str) -> Run:
    def run(values: Values) -> Number:
        value = values.get(name)
        if value is None:
            raise MissingError(name)
        return value

    return run


def _binary(operation: Callable[[Number, Number], Number], left: Run, right: Run) -> Run:
    def run(values: Values) -> Number:
        try:
            result = operation(left(values), right(values))
        except ZeroDivisionError:
            raise UndefinedError("the divisor is 0") from None
        except OverflowError:
            raise UndefinedError("the numbers are too large") from None
        return _bounded(result)

    return run


def _bounded(result: Number) -> Number:
    if isinstance(result, float) and not math.isfinite(result):
        raise UndefinedError("the numbers are too large")
    if isinstance(result, int) and abs(result) > 2**200:
        raise UndefinedError("the numbers are too large")
    return result


_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _call(name: str, arguments: list[Run]) -> Run:
    if name not in FUNCTIONS:
        raise ValueError(f"unknown function {name!r}{hint(name, FUNCTIONS)}")
    least, most, work = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        count = f"{least}" if least == most else f"{least} or more"
        raise ValueError(f"{name}() takes {count} values, not {len(arguments)}")
    if name == "first":
        return _first(arguments)
    if name in _THRESHOLDS:
        return _threshold(name, arguments)

    def run(values: Values) -> Number:
        operands = [argument(values) for argument in arguments]
        try:
            return _bounded(work(*operands))
        except (OverflowError, ValueError, ZeroDivisionError):
            raise UndefinedError(
                f"{name}() has no result for {', '.join(f'{operand:g}' for operand in operands)}"
            ) from None

    return run


def _first(arguments: Sequence[Run]) -> Run:
    return lambda values: arguments[_pick(arguments, values)](values)


def _pick(arguments: Sequence[Run], values: Values) -> int:
    """The first of some alternatives whose names are all there, else the last."""
    for index, argument in enumerate(arguments[:-1]):
        try:
            argument(values)
        except MissingError:
            continue
        except UndefinedError:
            pass
        return index
    return len(arguments) - 1


_OVER, _UNDER = (3, 4), (1, 2)  # relations: greater (or equal), less (or equal)
_THRESHOLDS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "upper_limit": ((30, 20), _OVER),
    "lower_limit": ((30, 20), _UNDER),
    "upper_warning": ((10,), _OVER),
    "lower_warning": ((10,), _UNDER),
}
"""Severities, the gravest first (critical 30, major 20, minor 10), and relations of CISCO-ENTITY-SENSOR-MIB."""


def _threshold(name: str, arguments: Sequence[Run]) -> Run:
    """The threshold of the gravest severity that a sensor has one for."""
    severities, relations = _THRESHOLDS[name]
    triples = [tuple(arguments[place : place + 3]) for place in range(0, len(arguments), 3)]

    def run(values: Values) -> Number:
        there: dict[Number, Number] = {}
        for severity, relation, value in triples:
            try:
                if relation(values) in relations:
                    there.setdefault(severity(values), value(values))
            except MissingError:
                continue
        grave = next((severity for severity in severities if severity in there), None)
        if grave is None:
            raise MissingError(name)
        return there[grave]

    return run


def dbm(watts: Number) -> Number:
    """Optical power in decibels of a milliwatt; none at all is -40 dBm, as modules say it.

    >>> round(dbm(0.00025), 2), dbm(0)
    (-6.02, -40.0)
    """
    return max(-40.0, 10 * math.log10(watts / 1e-3)) if watts > 0 else -40.0


def pow10(exponent: Number) -> Number:
    """10 to the power of a number; exponents beyond 30 mean that the agent answers nonsense."""
    if abs(exponent) > 30:
        raise UndefinedError(f"10 to the power of {exponent} cannot be intended")
    return 10**exponent


def scaled(value: Number, scale: Number, precision: Number) -> Number:
    """A reading of entPhySensorTable in its unit (RFC 3433, section 3: EntitySensorDataScale 9 is 10^0, 10 is 10^3).

    >>> scaled(235, 9, 1), scaled(41000, 8, 0)
    (23.5, 41.0)
    """
    exponent = 3 * (int(scale) - 9) - int(precision)
    return value / pow10(-exponent) if exponent < 0 else value * pow10(exponent)


def u32(value: Number) -> Number:
    """An Integer32 that an agent let run over, read without sign (hrStorageUsed of more than 2^31 units).

    >>> u32(-1), u32(5)
    (4294967295, 5)
    """
    return value + 2**32 if -(2**31) <= value < 0 else value


FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Number]]] = {
    "min": (2, 20, min),
    "max": (2, 20, max),
    "first": (2, 20, max),  # compiled by _first: the first of its values that the device has
    "pow10": (1, 1, pow10),
    "scaled": (3, 3, scaled),
    "u32": (1, 1, u32),
    "dbm": (1, 1, dbm),
    **dict.fromkeys(_THRESHOLDS, (3, 30, max)),  # compiled by _threshold
}
