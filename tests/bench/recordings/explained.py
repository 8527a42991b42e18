"""Differences that are understood, one by one, from ``explained.yaml``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from tests.bench.recordings.compare import Difference
from tests.bench.recordings.device import Result

_KEYS = {"recording", "part", "what", "contains", "why"}


class BadExplanationsError(ValueError):
    """A file of explanations that cannot be used; one sentence."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One difference: which recording, part and object; ``contains`` must stand in what the difference says."""

    recording: str
    part: str
    what: str
    contains: str
    why: str

    def fits(self, recording: str, difference: Difference) -> bool:
        """Whether it is this difference."""
        return (
            self.recording == recording
            and self.part == difference.part
            and fnmatchcase(difference.what, self.what)
            and self.contains in difference.why
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """All explanations."""

    explanations: tuple[Explanation, ...] = field(default=())

    def why(self, recording: str, difference: Difference) -> str | None:
        """The explanation of a difference; None if there is none."""
        return next(
            (explanation.why for explanation in self.explanations if explanation.fits(recording, difference)), None
        )

    def unused(self, results: Iterable[Result]) -> list[str]:
        """Explanations of recordings that were replayed, without a difference that they explain."""
        replayed = {result.name: result.differences for result in results if not result.trouble}
        return [
            f"{explanation.recording} {explanation.part} {explanation.what}"
            for explanation in self.explanations
            if explanation.recording in replayed
            and not any(
                explanation.fits(explanation.recording, difference) for difference in replayed[explanation.recording]
            )
        ]


def load_explained(path: Path) -> Explained:
    """The explanations of a file. Raises BadExplanations."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadExplanationsError(f"{path}: cannot be read ({type(error).__name__})") from None
    explanations = []
    for number, entry in enumerate(entries or [], 1):
        if not isinstance(entry, dict) or set(entry) != _KEYS or not all(isinstance(v, str) for v in entry.values()):
            raise BadExplanationsError(f"{path}: entry {number} needs the keys {', '.join(sorted(_KEYS))}, all texts")
        explanations.append(Explanation(**entry))
    return Explained(tuple(explanations))
