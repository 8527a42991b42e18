"""The error of table import: a sentence with file, line and remedy."""

from __future__ import annotations

from soakwatch.core.errors import SoakwatchError


class DataError(SoakwatchError, ValueError):
    """The data cannot be used; ``str()`` names file, line and remedy, if known."""
