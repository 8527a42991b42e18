"""What the sources of a target are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from soakwatch.plan import SourcePlan


def labelled(sources: Sequence[SourcePlan]) -> list[tuple[str, SourcePlan]]:
    """Each source with a label of its own: the poller's name, numbered from the second of its kind on."""
    seen: Counter[str] = Counter()
    pairs = []
    for source in sources:
        seen[source.poller] += 1
        number = seen[source.poller]
        pairs.append((source.poller if number == 1 else f"{source.poller}-{number}", source))
    return pairs
