"""SNMPv3 users whose notifications are taken, and the interface of their receiver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from soakwatch.sources.receivers.notification import Notification


@dataclass(frozen=True, slots=True)
class User:
    """A user whose notifications are taken; ``engine_id`` is the sender's for traps, None for informs."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: str = "SHA"
    priv: str = field(default="", repr=False)
    priv_protocol: str = "AES"
    engine_id: bytes | None = None

    @property
    def key(self) -> Key:
        """What distinguishes users of a receiver."""
        return self.name, self.engine_id


Key = tuple[str, bytes | None]


class Receiver(Protocol):
    """Reads SNMPv3 for all sources at an address, because senders of informs must see one engine there."""

    def add_users(self, target: str, users: Sequence[User]) -> None:
        """Adds a source's users. Raises PlanError for invalid keys, or if another source contradicts them."""
        ...

    def remove_users(self, target: str, users: Sequence[User]) -> bool:
        """Removes the users; True if none is left and the receiver is closed."""
        ...

    def read(self, data: bytes, address: str, port: int, mine: frozenset[Key]) -> Notification | str | None:
        """The notification, else its fate, None for an engine discovery; ``mine`` are the source's users."""
        ...
