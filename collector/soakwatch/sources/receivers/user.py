"""Users of SNMPv3 whose notifications are taken, and what a receiver of them can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from soakwatch.sources.receivers.notification import Notification


@dataclass(frozen=True, slots=True)
class User:
    """A user whose notifications are taken; ``engine_id`` is that of a sender of traps, None for informs."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: str = "SHA"
    priv: str = field(default="", repr=False)
    priv_protocol: str = "AES"
    engine_id: bytes | None = None

    @property
    def key(self) -> Key:
        """What a receiver distinguishes users by."""
        return self.name, self.engine_id


Key = tuple[str, bytes | None]


class Receiver(Protocol):
    """Reads SNMPv3 for all sources at a place: whoever sends informs must meet one engine there, not several."""

    def admit(self, target: str, users: Sequence[User]) -> None:
        """Take a source's users in. Raises PlanError for keys that cannot be, or that another source contradicts."""
        ...

    def dismiss(self, target: str, users: Sequence[User]) -> bool:
        """Remove the users; True if no user is left, and the receiver closed."""
        ...

    def read(self, data: bytes, address: str, port: int, mine: frozenset[Key]) -> Notification | str | None:
        """The notification, what became of it instead, or None for a mere question; for a source with these users."""
        ...
