"""Words of commands that name what belongs to a run: ``{release}`` is the value of that axis or label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

RUN_FACTS = ("campaign", "cell", "repetition", "attempt", "testbed", "folder")
"""What words of commands may name besides axes and labels."""
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def placeholders(words: Sequence[str]) -> Iterator[str]:
    """The names in braces in the words of a command; doubled braces are text.

    >>> list(placeholders(["./flash", "{release}", "--json={{x}}"]))
    ['release']
    """
    for word in words:
        for match in _PLACEHOLDER.finditer(word.replace("{{", "\0").replace("}}", "\0")):
            yield match[1]


def filled(words: Sequence[str], facts: Mapping[str, str]) -> tuple[str, ...]:
    """The words with the values of what they name.

    >>> filled(["./flash", "{release}.bin", "{{x}}"], {"release": "7.2"})
    ('./flash', '7.2.bin', '{x}')
    """

    def put(match: re.Match[str]) -> str:
        return facts.get(match[1], match[0])

    return tuple(
        _PLACEHOLDER.sub(put, word.replace("{{", "\0").replace("}}", "\1")).replace("\0", "{").replace("\1", "}")
        for word in words
    )


def environment_of(facts: Mapping[str, str]) -> dict[str, str]:
    """The same for a command's environment.

    >>> environment_of({"release": "7.2", "cell": "a=b"})
    {'SOAKWATCH_RELEASE': '7.2', 'SOAKWATCH_CELL': 'a=b'}
    """
    return {f"SOAKWATCH_{name.upper().replace('-', '_')}": text for name, text in facts.items()}
