"""The section ``generator`` of a fingerprint: which generator, its version, and how it is set, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from soakwatch.core.text import one_line
from soakwatch_model.tree import Tree

_WORDS, _LENGTH = 64, 300
_HIDDEN = "***"
_NAMED = r"[\w-]*(?:pass(?!ive)|pwd|token|secret|credential|cookie|auth|api-?_?key|private-?_?key)[\w-]*"
_OPTION = re.compile(rf"(?i)--?{_NAMED}")
_ASSIGNED = re.compile(rf"(?i)(-{{0,2}}{_NAMED})=.*", re.DOTALL)
_HEADER = re.compile(
    r"(?i)(authorization|proxy-authorization|cookie|[\w-]*(?:token|key|secret)[\w-]*)\s*:.*", re.DOTALL
)
_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(rf"(?i)([?&]{_NAMED}=)[^&\s]*")
_USER = frozenset({"-u", "--user"})  # of curl and its like: NAME:PASSWORD; -u alone is UDP elsewhere


def generator(name: str, version: str, config: Mapping[str, Tree], notes: Iterable[str] = ()) -> Mapping[str, Tree]:
    """The tree of a generator. What is empty is left out; a version that nobody tells is a note."""
    about: dict[str, Tree] = {"name": name}
    lines = list(notes)
    if version:
        about["version"] = version
    else:
        lines.append(f"generator: {name} does not tell its version here")
    settings: dict[str, Tree] = {key: value for key, value in config.items() if value not in ("", None, [], {})}
    if settings:
        about["config"] = settings
    tree: dict[str, Tree] = {"generator": about}
    if lines:
        tree["notes"] = [*lines]
    return tree


def told_command(words: Sequence[str]) -> str:
    """A command on one line, without the values of options, headers and URLs that look like secrets.

    >>> told_command(["k6", "run", "--token", "abc", "-e", "PASSWORD=x", "http://u:p@dut/?api_key=1&n=2"])
    'k6 run --token *** -e PASSWORD=*** http://***@dut/?api_key=***&n=2'
    >>> told_command(["curl", "-H", "Authorization: Bearer abc", "-u", "me:pw"])
    'curl -H Authorization: *** -u ***'
    """
    told: list[str] = []
    hide = False
    for before, word in zip(["", *words], words, strict=False):
        named = before in _USER and ":" in word
        told.append(_HIDDEN if hide or named else _plain(word))
        hide = not hide and _OPTION.fullmatch(word) is not None
    more = f" ... and {len(told) - _WORDS} words more" if len(told) > _WORDS else ""
    return " ".join(one_line(word, _LENGTH) for word in told[:_WORDS]) + more


def _plain(word: str) -> str:
    for form in (_ASSIGNED, _HEADER):
        if (match := form.fullmatch(word)) is not None:
            return f"{match[1]}{'=' if form is _ASSIGNED else ': '}{_HIDDEN}"
    return _QUERY.sub(rf"\1{_HIDDEN}", _IN_URL.sub(f"{_HIDDEN}@", word))
