"""A source that breaks the convention: it cannot be started."""

from __future__ import annotations

from soakwatch.sources.abc import SourceConfig


class Config(SourceConfig):
    """Keys of the source."""
