"""The set-up in a report: machines, which source reported them, what could not be read, what changed meanwhile."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from typing import Any

from rich.console import Console
from tests.collector.report.conftest import BEGIN, MemoryRecord

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.judge.verdict import Verdict
from soakwatch.record.model import StoredEvent
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict
from soakwatch_model.event import Event

LINK = {"current_link_width": 8, "max_link_width": 16, "below_capability": True}
MACHINE: dict[str, Any] = {
    "host": {"os": "Debian 12", "bios_date": "03/04/2025"},
    "cpu": {"model": "EPYC", "logical_cores": 8, "governor": "performance"},
    "cstates": {"states": [{"name": "C6", "latency_us": 133, "disabled": "no"}]},
    "nics": {"eth0": {"driver": "ice", "pcie": LINK, "offloads": {f"f{n}": n != 3 for n in range(8)}}},
    "pci_network": {
        "0000:81:00.0": {"driver": "ice", "interfaces": "eth0", "pcie": LINK},
        "0000:82:00.0": {"driver": "vfio-pci", "pcie": LINK},
    },
    "reported_by": {"host": "ssh", "cpu": "ssh", "cstates": "ssh", "nics": "ssh", "pci_network": "ssh"},
    "notes": ["the memory modules (DIMMs) are not known: only root may read it"],
}


def test_the_set_up_is_readable_and_says_what_changed(plain: tuple[MemoryRecord, Verdict]) -> None:
    record, verdict = deepcopy(plain[0]), plain[1]
    router = {"device": {"vendor": "Cisco", "model": "ASR1001", "software": "17.9"}, "reported_by": {"device": "snmp"}}
    end = {**deepcopy(MACHINE), "cpu": {**MACHINE["cpu"], "governor": "powersave"}}
    record.metas["fingerprint"] = json.dumps({"box": MACHINE, "router": router})
    record.metas["fingerprint_end"] = json.dumps({"box": end, "router": router})
    page = render_html(record, verdict).partition('<section id="setup">')[2].partition("</section>")[0]
    assert '<th class="name">cpu governor</th><td>performance -&gt; powersave</td>' in page
    assert "Reported by ssh." in page
    assert "Reported by snmp." in page
    assert "told by" not in page
    assert "the memory modules (DIMMs) are not known: only root may read it" in page
    assert "on: f0, f1, f2, f4, f5, f6, f7; off: f3" in page
    assert '<th class="name">states C6</th><td>latency us 133, disabled no</td>' in page.replace(
        "latency_us", "latency us"
    )
    target = io.StringIO()
    print_verdict(record, verdict, Console(file=target, width=200))
    for text in (target.getvalue(), render_markdown(record, verdict)):
        assert "cpu governor performance -> powersave" in text.replace("\\", "").replace("&gt;", ">")
    assert "Cisco ASR1001 17.9" in target.getvalue()


def test_the_line_of_a_generator_names_it(plain: tuple[MemoryRecord, Verdict]) -> None:
    """TRex has all in one word, Pktgen its version beside it; one that says neither is told by its fingerprint."""
    record, verdict = deepcopy(plain[0]), plain[1]
    identities = {
        "tg": {"generator": "TRex 3.04 STL", "address": "198.18.0.9"},
        "pktgen": {"generator": "Pktgen-DPDK", "address": "198.18.0.8", "version": "24.10.3"},
        "wrk": {"file": "wrk.log"},
    }
    record.stored += [
        StoredEvent(90 + n, "monitor", Event(IDENTITY, target, "", BEGIN, None, detail))
        for n, (target, detail) in enumerate(identities.items())
    ]
    record.metas["fingerprint"] = json.dumps({"wrk": {"generator": {"name": "wrk", "version": "4.2.0"}}})
    target = io.StringIO()
    print_verdict(record, verdict, Console(file=target, width=200))
    said = target.getvalue()
    for words in ("TRex 3.04 STL", "Pktgen-DPDK, 24.10.3", "wrk 4.2.0"):
        assert words in said
