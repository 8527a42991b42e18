"""Compiles users' regular expressions, or refuses them in one sentence."""

from __future__ import annotations

import re
import warnings

_MAX_LENGTH = 1000


def user_regex(text: str, name: str = "") -> re.Pattern[str]:
    """The compiled expression; ``name`` is the key it was given for. Raises ValueError.

    Also refuses a bare bracket, ``--``, ``&&``, ``~~`` or ``||`` in a set (``[[:alpha:]]``): Python takes it literally
    today, warns on standard error, and plans to change its meaning.
    >>> user_regex("sa_(up|down)").groups
    1
    >>> user_regex("[[a]", "match")
    Traceback (most recent call last):
    ValueError: match '[[a]' is not a regular expression: possible nested set at position 1: put a backslash before it
    """
    said = f"{name} {text!r}" if name else repr(text)
    if len(text) > _MAX_LENGTH:
        raise ValueError(
            f"{name or 'a regular expression'} has more than {_MAX_LENGTH} characters: write a shorter one"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(text)
        except FutureWarning as warning:
            words = str(warning)
            raise ValueError(
                f"{said} is not a regular expression: {words[:1].lower()}{words[1:]}: put a backslash before it"
            ) from None
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{said} is not a regular expression: {error}") from None
