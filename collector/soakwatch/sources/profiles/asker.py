"""Who asks a device for values: the seam between profiles and the transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from soakwatch.sources.profiles.value import Value


class Asker(Protocol):
    """Asks one device. OIDs are dotted text without a leading dot; a failed look raises SourceError."""

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole OIDs; those that the device does not have are absent."""
        ...

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """Every value under each of the OIDs, by its whole OID."""
        ...
