"""A sink for the polls of a source that keeps them in a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch_model.sample import Poll


@dataclass
class PollList:
    """See PollSink; cadences and the first poll are of no interest."""

    polls: list[Poll] = field(default_factory=list)

    def take(self, poll: Poll) -> None:
        """Keep a poll."""
        self.polls.append(poll)

    async def cadences(self, _: Mapping[str, float]) -> bool:
        """They are kept nowhere."""
        return True

    def first_poll(self, _: Exception | None) -> bool:
        """The run goes on."""
        return False
