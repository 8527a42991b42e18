"""Labels of a run, such as ``release=7.2``, to find, filter and compare runs by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

LABEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
LABELS_KEY = "labels"
"""Meta key: the labels of the run, a JSON object of text by name."""
PENDING_KEY = "labels_pending"
"""Meta key: "1" until the labels that the run reads itself were read or given up, then ""."""
RELEASE = "release"
"""The label with the release under test, whatever the devices report."""
MAX_LABELS = 32
MAX_TEXT = 200
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*")


def label_name(name: str) -> str:
    """Returns ``name`` if it can name a label. Raises ValueError."""
    if LABEL_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name[:60]!r} cannot name a label: write a lower-case word such as release (letters, digits, '_', '-';"
            " 40 characters at most)"
        )
    return name


def label_text(name: str, text: str) -> str:
    """The text of label ``name``, stripped. Raises ValueError unless it is one printable line of 1 to ``MAX_TEXT``
    characters and no reference to a secret: labels are shown everywhere."""
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
    """Parses labels given as ``NAME=VALUE``. Raises ValueError in one sentence.

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
    """Returns the labels unless they are more than ``MAX_LABELS``. Raises ValueError."""
    if len(labels) > MAX_LABELS:
        raise ValueError(f"{len(labels)} labels are too many: {MAX_LABELS} at most")
    return labels


def labels_in(text: str | None) -> dict[str, str]:
    """Parses the labels in a record (``LABELS_KEY``); values that are not text are left out.

    >>> labels_in('{"release": "7.2", "build": 9}'), labels_in(None), labels_in("[")
    ({'release': '7.2'}, {}, {})
    """
    try:
        held = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in held.items() if isinstance(v, str) and v} if isinstance(held, dict) else {}


def labels_json(labels: Mapping[str, str]) -> str:
    """Encodes labels for a record."""
    return json.dumps(labels, ensure_ascii=False)


def labels_words(labels: Mapping[str, str]) -> str:
    """Labels in one line, written as on the command line.

    >>> labels_words({"release": "7.2", "testbed": "rack 3"})
    'release=7.2, testbed=rack 3'
    """
    return ", ".join(f"{name}={text}" for name, text in labels.items())


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """True if a run has all ``wanted`` labels; case is ignored, and a text ending in ``*`` is a prefix.

    >>> has_labels({"release": "7.2.1"}, {"release": "7.2"}), has_labels({"release": "7.2.1"}, {"release": "7.2*"})
    (False, True)
    """
    return all(_fits(labels.get(name, "").casefold(), text.casefold()) for name, text in wanted.items())


def _fits(text: str, wanted: str) -> bool:
    return text.startswith(wanted[:-1]) and bool(text) if wanted.endswith("*") else text == wanted
