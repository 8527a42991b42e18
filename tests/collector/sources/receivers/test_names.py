"""Links that notifications call by their index: their events are about the interface that the series are about."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import SECOND, Device, interfaces
from tests.collector.sources.receivers.gathering import gather, site
from tests.collector.sources.receivers.shared import link_down, sent_from

from soakwatch.sources.pollers.traps import Config, start
from soakwatch.sources.profiles import load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch.sources.receivers.names import InterfaceNames, share_names
from soakwatch.sources.receivers.notification import Value

IF_INDEX, IF_DESCR, IF_STATE = "1.3.6.1.2.1.2.2.1.1", "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.2.2.1.8"
IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"


@pytest.mark.parametrize(
    ("binds", "known", "unknown"),
    [
        ([(f"{IF_INDEX}.3", 3), (f"{IF_STATE}.3", 2)], "interface=Gi0/3", "interface=ifIndex 3"),
        ([(f"{IF_STATE}.3", 2)], "interface=Gi0/3", "interface=ifIndex 3"),
        (
            [(f"{IF_INDEX}.3", 3), (f"{IF_DESCR}.3", b"GigabitEthernet0/3")],
            "interface=Gi0/3",
            "interface=GigabitEthernet0/3",
        ),
        ([(f"{IF_INDEX}.3", 3), (f"{IF_NAME}.3", b"Gi9/9")], "interface=Gi9/9", "interface=Gi9/9"),
        ([(f"{IF_INDEX}.5", 5), (f"{IF_NAME}.5", b"Gi0/3")], "interface=Gi0/3 #5", "interface=Gi0/3"),
        ([(f"{IF_INDEX}.99", 99)], "interface=ifIndex 99", "interface=ifIndex 99"),
        ([], "", ""),
    ],
)
def test_a_link_is_called_as_its_series_are(
    tmp_path: Path, binds: list[tuple[str, Value]], known: str, unknown: str
) -> None:
    """With an SNMP source that has surveyed the device, and before that; the index stays in the detail."""
    device = Device(interfaces({3: "Gi0/3", 4: "Gi0/4", 5: "Gi0/3"}))
    reader = ProfileReader(device, load_profiles()["generic"])

    async def main() -> list[tuple[str, str | None]]:
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate({"listen": "127.0.0.1:0"}), site(tmp_path), stack)
            share_names("dut", InterfaceNames(lambda: reader.survey), stack)
            share_names("another", lambda _: "interface=of another device", stack)
            await sent_from("127.0.0.1", poller.port, link_down(*binds))
            gathered = await gather(poller, lambda gathered: gathered.total == 1)
            await reader.poll(SECOND)
            await sent_from("127.0.0.1", poller.port, link_down(*binds))
            gathered = await gather(poller, lambda gathered: gathered.total == 2, gathered)
            return [(event.object, event.detail.get("ifindex")) for event in gathered.events]

    index = binds[0][0].rpartition(".")[2] if binds else None
    assert asyncio.run(main()) == [(unknown, index), (known, index)]
