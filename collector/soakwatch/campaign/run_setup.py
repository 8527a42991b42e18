"""What a campaign does around one of its runs: the commands before and after it, as the run's record keeps them.

The record of a run is all that is needed to repeat it: its plan, and these with the files that they name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from pydantic import TypeAdapter

from soakwatch.campaign.command_placeholders import environment_of, filled
from soakwatch.core.redaction import Redaction

META = "setup"
"""Record meta: the commands as JSON."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The words of the commands, empty where there is none, and ``facts``, the values that they may name."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """When each is run (before, after), and its words with their values, in the folder of the run."""
        for when, words in (("before", self.before), ("after", self.after)):
            if words:
                yield when, filled(words, {**self.facts, "folder": "."})

    def text(self, redaction: Redaction) -> str:
        """As JSON for the record, without the secrets of the plan."""
        return redaction.output(json.dumps(asdict(self), ensure_ascii=False).encode()).decode()

    def script(self, when: str, words: tuple[str, ...]) -> str:
        """A command as a script of the shell, to be run in a folder in which its files are."""
        cell, repetition = self.facts.get("cell", ""), self.facts.get("repetition", "")
        of = f"{self.facts.get('campaign', '')}, {cell}, repetition {repetition}".replace("\n", " ")
        values = environment_of({name: value for name, value in self.facts.items() if name != "folder"})
        exported = [f"export {name}={shlex.quote(value)}" for name, value in values.items() if value]
        return "\n".join(
            (
                "#!/bin/sh",
                f"# What a campaign does {when} this run: {of}.",
                'cd "$(dirname "$0")" || exit 4',
                *exported,
                'export SOAKWATCH_FOLDER="$PWD"',
                f"exec {shlex.join(words)}",
                "",
            )
        )


_SETUP = TypeAdapter(RunSetup)


def setup_of(text: str) -> RunSetup:
    """The commands that a record or a file holds as JSON. Raises ValueError."""
    return _SETUP.validate_json(text)
