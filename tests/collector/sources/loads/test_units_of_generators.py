"""Units as the exports of traffic generators write them in their headers."""

from __future__ import annotations

import pytest

from soakwatch.sources.tables.units import split_header, unit


@pytest.mark.parametrize(
    ("text", "name", "scale"),
    [
        ("bps", "bit/s", 1.0),
        ("Kbps", "bit/s", 1e3),
        ("Mbps", "bit/s", 1e6),
        ("Gbps", "bit/s", 1e9),
        ("Mb/s", "bit/s", 1e6),
        ("Mbit/s", "bit/s", 1e6),
        ("kbits/s", "bit/s", 1e3),
        ("Bps", "By/s", 1.0),
        ("KBps", "By/s", 1e3),
        ("MB/s", "By/s", 1e6),
        ("MiB/s", "By/s", 2.0**20),
        ("bytes/s", "By/s", 1.0),
        ("kb", "By", 1e3),
        ("fps", "{packet}/s", 1.0),
        ("Kfps", "{packet}/s", 1e3),
        ("frames/s", "{packet}/s", 1.0),
        ("packets/s", "{packet}/s", 1.0),
    ],
)
def test_a_small_b_of_a_rate_is_a_bit(text: str, name: str, scale: float) -> None:
    """``Kbps`` are bits and ``KBps`` bytes; frames are packets."""
    assert unit(text) == (name, scale)


def test_a_percent_sign_ends_a_header() -> None:
    """``Loss %`` is a loss in percent."""
    assert split_header("Loss %") == ("Loss", "%")
    assert split_header("Tx Rate (Kbps)") == ("Tx Rate", "Kbps")
    assert split_header("50%") == ("50%", None)
