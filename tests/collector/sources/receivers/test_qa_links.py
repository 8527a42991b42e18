"""Which interface a notification of a link means when its agent writes the varbinds in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from soakwatch.sources.profiles.series_of_rows import INTERFACE
from soakwatch.sources.receivers.notification import Notification, Value
from soakwatch.sources.receivers.trap_event import event_of
from soakwatch_model.sample import object_text

LINK_DOWN = "1.3.6.1.6.3.1.1.5.3"
INDEX, ADMIN, OPERATIONAL = "1.3.6.1.2.1.2.2.1.1", "1.3.6.1.2.1.2.2.1.7", "1.3.6.1.2.1.2.2.1.8"
HIGH_SPEED = "1.3.6.1.2.1.31.1.1.1.15"
NAMES: Mapping[str, str] = {"1": "lo", "4": "eth0", "7": "eth7", "15": "eth15"}


def known_as(index: str) -> str | None:
    """The interfaces of the device, as a survey names them."""
    return object_text(**{INTERFACE: NAMES[index]}) if index in NAMES else None


@pytest.mark.parametrize(
    ("binds", "interface"),
    [
        (((f"{INDEX}.4", 4), (f"{OPERATIONAL}.4", 2)), "interface=eth0"),
        (((INDEX, 4), (ADMIN, 1), (OPERATIONAL, 2)), "interface=eth0"),
        (((f"{INDEX}.0", 4), (f"{ADMIN}.0", 1)), "interface=eth0"),
        (((f"{OPERATIONAL}.4", 2),), "interface=eth0"),
        (((f"{HIGH_SPEED}.4", 1000),), "interface=eth0"),
        (((ADMIN, 1), (OPERATIONAL, 2)), ""),
        (((HIGH_SPEED, 1000),), ""),
        (((f"{OPERATIONAL}.99", 2),), "interface=ifIndex 99"),
    ],
    ids=["whole", "no instance", "instance 0", "only a state", "only ifXTable", "states alone", "a column", "unknown"],
)
def test_a_column_without_its_instance_is_no_index(binds: tuple[tuple[str, Value], ...], interface: str) -> None:
    """The number of a column taken for an ifIndex would report a link that never went down."""
    event = event_of(Notification("2c", LINK_DOWN, 1.0, binds), "192.0.2.1", 10**18, {}, known_as)
    assert event.kind == "link.down"
    assert event.object == interface


def test_states_without_their_instance_are_read() -> None:
    """What the link is, and what it should be."""
    notification = Notification("2c", LINK_DOWN, 1.0, ((INDEX, 4), (ADMIN, 1), (OPERATIONAL, 2)))
    event = event_of(notification, "192.0.2.1", 10**18, {}, known_as)
    assert (event.detail["ifindex"], event.detail["admin"], event.detail["operational"]) == ("4", "up", "down")
