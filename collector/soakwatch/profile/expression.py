"""Arithmetic over the columns of a row: names, numbers, + - * /, brackets and a few functions; nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from soakwatch.nearest import hint
from soakwatch.profile.value import Number

Values = Mapping[str, Number | None]
"""What each name is in one row; None or absent where the device has no such value."""
Run = Callable[[Values], Number]

MOST_CHARACTERS = 400
SECONDS = "seconds"


class MissingError(Exception):
    """A name without a value: the expression has none."""


class UndefinedError(Exception):
    """Values are there, but the arithmetic has no result (a division by zero): a sentence."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, parsed: the names that it reads, and how it is worked out.

    ``plain`` says that it is one name, whose value then stays what it is (an integer counter, a text to match).
    ``run`` raises MissingError and UndefinedError.
    """

    text: str
    names: tuple[str, ...]
    plain: bool
    run: Run


def parse(words: str, known: Iterable[str]) -> Expression:
    """The expression of a text over the names in ``known``. Raises ValueError with a sentence.

    >>> parse("size * unit - free", {"size", "unit", "free"}).run({"size": 10, "unit": 4, "free": 8})
    32
    """
    stripped, known = words.strip(), set(known)
    if stripped in known:
        return Expression(stripped, (stripped,), plain=True, run=_name(stripped))
    if len(stripped) > MOST_CHARACTERS:
        raise ValueError(f"has more than {MOST_CHARACTERS} characters")
    try:
        tree = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"{stripped!r} is neither a name of this group nor arithmetic (names, numbers, + - * / ( ), "
            f"{', '.join(sorted(FUNCTIONS))})"
        ) from None
    names: dict[str, None] = {}
    run = _compile(tree, known, names)
    return Expression(stripped, tuple(names), plain=False, run=run)


def _compile(node: ast.expr, known: set[str], names: dict[str, None]) -> Run:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float) or not math.isfinite(node.value):
            raise ValueError(f"{node.value!r} is no number")
        return _constant(node.value)
    if isinstance(node, ast.Name):
        if node.id not in known:
            raise ValueError(f"unknown name {node.id!r}{hint(node.id, known)}")
        names[node.id] = None
        return _name(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _binary(_OPERATORS[type(node.op)], _compile(node.left, known, names), _compile(node.right, known, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _compile(node.operand, known, names)
        return lambda values: -inner(values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_compile(argument, known, names) for argument in node.args])
    raise ValueError("only names, numbers, + - * / ( ) and functions can stand in a value")


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
            raise UndefinedError("the numbers are too large to be worked with") from None
        return _bounded(result)

    return run


def _bounded(result: Number) -> Number:
    if isinstance(result, float) and not math.isfinite(result):
        raise UndefinedError("the numbers are too large to be worked with")
    if isinstance(result, int) and abs(result) > 2**200:
        raise UndefinedError("the numbers are too large to be worked with")
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

    def run(values: Values) -> Number:
        found = [argument(values) for argument in arguments]
        try:
            return _bounded(work(*found))
        except (OverflowError, ValueError, ZeroDivisionError):
            raise UndefinedError(f"{name}() has no result for {', '.join(f'{one:g}' for one in found)}") from None

    return run


def _first(arguments: list[Run]) -> Run:
    def run(values: Values) -> Number:
        for argument in arguments[:-1]:
            try:
                return argument(values)
            except MissingError:
                continue
        return arguments[-1](values)

    return run


def pow10(exponent: Number) -> Number:
    """10 to the power of a number; exponents beyond 30 mean that the agent answers nonsense."""
    if abs(exponent) > 30:
        raise UndefinedError(f"10 to the power of {exponent} cannot be meant")
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
}
