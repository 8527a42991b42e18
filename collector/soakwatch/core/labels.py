"""Labels of a run: words such as ``release=7.2`` by which runs are found, filtered and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

LABEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
LABELS_KEY = "labels"
"""The meta of a record that holds the labels of its run: a JSON object of text by name."""
PENDING_KEY = "labels_pending"
"""The meta that is "1" from the start of a run until the labels that it has to read were read or given up, then ""."""
RELEASE = "release"
"""The label that is the release under test, whatever the devices say of themselves."""
MAX_LABELS = 32
MAX_TEXT = 200
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*")


def label_name(name: str) -> str:
    """``name`` if it can be the name of a label. Raises ValueError."""
    if LABEL_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name[:60]!r} cannot name a label: write a lower-case word such as release (letters, digits, '_', '-';"
            " 40 characters at most)"
        )
    return name


def label_text(name: str, text: str) -> str:
    """The text of the label ``name`` without blanks around it. Raises ValueError: it is one printable line, not empty,
    of at most ``MAX_TEXT`` characters, and no reference to a secret, for labels are shown everywhere."""
    value = text.strip()
    if not value:
        raise ValueError(f"the label {name} has no value: write one, or leave the label out")
    if not value.isprintable():
        raise ValueError(f"the label {name} is not one line of printable text")
    if len(value) > MAX_TEXT:
        raise ValueError(f"the label {name} has {len(value)} characters: {MAX_TEXT} at most")
    if _REFERENCE.fullmatch(value):
        raise ValueError(f"the label {name} refers to a secret ({value[:60]}), and labels are shown: give its text")
    return value


def given_labels(words: Iterable[str]) -> dict[str, str]:
    """The labels of some ``NAME=VALUE``. Raises ValueError in one sentence.

    >>> given_labels(["release=7.2", "cell=kind=L4,size=64"])
    {'release': '7.2', 'cell': 'kind=L4,size=64'}
    """
    labels: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise ValueError(f"{word[:60]!r} is not a label: write NAME=VALUE, such as release=7.2")
        value = label_text(label_name(name), text)
        if labels.setdefault(name, value) != value:
            raise ValueError(f"the label {name} is given twice, as {labels[name]!r} and as {value!r}: keep one")
    return bounded(labels)


def bounded(labels: dict[str, str]) -> dict[str, str]:
    """The labels, if they are not too many. Raises ValueError."""
    if len(labels) > MAX_LABELS:
        raise ValueError(f"{len(labels)} labels are too many: {MAX_LABELS} at most")
    return labels


def labels_in(text: str | None) -> dict[str, str]:
    """The labels that a record holds under ``LABELS_KEY``; what is no text by name is left out.

    >>> labels_in('{"release": "7.2", "build": 9}'), labels_in(None), labels_in("[")
    ({'release': '7.2'}, {}, {})
    """
    try:
        held = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in held.items() if isinstance(v, str) and v} if isinstance(held, dict) else {}


def labels_json(labels: Mapping[str, str]) -> str:
    """The labels as a record keeps them."""
    return json.dumps(labels, ensure_ascii=False)


def labels_words(labels: Mapping[str, str]) -> str:
    """The labels in one line, as the command line takes them.

    >>> labels_words({"release": "7.2", "testbed": "rack 3"})
    'release=7.2, testbed=rack 3'
    """
    return ", ".join(f"{name}={text}" for name, text in labels.items())


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a run has all the labels that are wanted; case does not matter, and what ends in ``*`` is a beginning.

    >>> has_labels({"release": "7.2.1"}, {"release": "7.2"}), has_labels({"release": "7.2.1"}, {"release": "7.2*"})
    (False, True)
    """
    return all(_fits(labels.get(name, "").casefold(), text.casefold()) for name, text in wanted.items())


def _fits(text: str, wanted: str) -> bool:
    return text.startswith(wanted[:-1]) and bool(text) if wanted.endswith("*") else text == wanted
