r"""Labels of an object's canonical text: ``key=value`` joined by commas, ``\`` before ``,``, ``=`` and ``\``."""

from __future__ import annotations

import re

_PAIR = re.compile(r"(?:^|,)((?:[^\\,=]|\\.)*)=((?:[^\\,]|\\.)*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def label(text: str, key: str) -> str | None:
    r"""The value of one label of an object; None if it has no such label.

    >>> label("process=a\\,b,instance=0", "process"), label("process=nginx", "instance")
    ('a,b', None)
    """
    for match in _PAIR.finditer(text):
        if match[1] == key:
            return _ESCAPED.sub(r"\1", match[2])
    return None
