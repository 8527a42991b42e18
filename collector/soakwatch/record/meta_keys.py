"""Keys of the texts that a run leaves in its record."""

from __future__ import annotations

LEFT_OUT = "left_out"
"""The key of the columns of which readings were left out, since their metric cannot be so."""
UNREAD = "unread"
"""The key below which the record's account of an imported file lists the columns that the catalogue does not know."""

RULES_KEY = "rules"
"""The meta that holds, as JSON, the rules that were named when a table was imported."""
