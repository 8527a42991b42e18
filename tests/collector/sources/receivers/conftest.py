"""The programs of the system that send notifications and log lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.collector.sources.receivers.gathering import Sender


@pytest.fixture
def send(tmp_path: Path) -> Sender:
    """Runs snmptrap, snmpinform or logger."""
    for program in ("snmptrap", "snmpinform", "logger"):
        assert shutil.which(program), f"{program} is not installed: apt-get install snmp bsdutils"
    return Sender(tmp_path)
