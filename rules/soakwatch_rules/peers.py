"""Probed peers: requests sent and lost in stretches, and what a cut path hid of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from soakwatch_model.label import label
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.silences import peer_down
from soakwatch_rules.spans import joined, overlap_s
from soakwatch_rules.stats.tally import Tally

_MAX_VALUE = 1e150  # larger values may overflow in arithmetic
_Z = 1.6449  # one-sided 95 %


def requests(own: Mapping[str, Series], spans: Sequence[Window]) -> tuple[float, float]:
    """Requests sent and lost in these stretches; without counters, readings of ``reach.up`` and those without
    answer."""
    sent, lost = own.get("reach.sent"), own.get("reach.lost")
    if sent is not None and lost is not None and len(sent) > 1 and len(lost) > 1:
        with np.errstate(all="ignore"):
            tallies = Tally([sent]), Tally([lost])
            total, missing = (sum(t.between(w.begin_ns, w.end_ns)[0] for w in spans) for t in tallies)
    elif "reach.up" in own:
        up = values_in(own["reach.up"].finite(), spans)
        total, missing = float(up.size), float(np.sum(up <= 0))
    else:
        return 0.0, 0.0
    if not (math.isfinite(total) and math.isfinite(missing)) or total > 1e15:
        return 0.0, 0.0
    total = max(0.0, total)
    return total, min(max(0.0, missing), total)


def values_in(series: Series, spans: Sequence[Window]) -> Floats:
    """The readings in these stretches, limited to values that cannot overflow."""
    matches = [series.between(w.begin_ns, w.end_ns).values for w in spans]
    return np.clip(np.concatenate(matches), -_MAX_VALUE, _MAX_VALUE) if matches else np.empty(0)


def interval(lost: float, sent: float) -> tuple[float, float]:
    """Wilson's interval of a lost share, 95 % on each side."""
    share, z2 = lost / sent, _Z * _Z
    middle = (share + z2 / (2 * sent)) / (1 + z2 / sent)
    half = _Z * math.sqrt(share * (1 - share) / sent + z2 / (4 * sent * sent)) / (1 + z2 / sent)
    return max(0.0, middle - half), min(1.0, middle + half)


def cut_with_own(up: Series | None, cut: Sequence[Window]) -> tuple[Window, ...]:
    """The times in which the path was cut, extended to each silence of the peer of which they are at least half."""
    own = [] if up is None else [w for w in peer_down(up) if 2 * overlap_s(w, cut) >= w.seconds]
    return joined([*cut, *own])


def peer_name(peer: str) -> str:
    """The name of a peer and its protocol, in words."""
    protocol = label(peer, "protocol")
    return f"{label(peer, 'peer') or peer}{f' over {protocol}' if protocol else ''}"


def finite_numbers(numbers: dict[str, float]) -> dict[str, float]:
    """The finite ones of these numbers."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
