"""Network cards: the driver's own counters of drops and errors, of ``ethtool -S``."""

from __future__ import annotations

import re
import shlex

from soakwatch.sources.transport.ssh.ask import Ask, lines, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

# Names are each driver's own (mlx5, ixgbe, i40e, ice, ena, virtio_net, bnxt ...); these parts mean loss everywhere.
_LOSS = re.compile(
    r"drop|discard|missed|no_dma|no_buf|nobuf|out_of_buf|alloc_(?:fail|err)|overrun|overflow|oversize|undersize|crc|fcs|"
    r"csum_err|checksum_err|_errors?$|_err$|timeout|exceeded|starved|wqe_err|steer_miss"
)
_NONE = re.compile(r"pause|prio\d*_pause|napi|xdp_(?!drop)|cache|page_pool|timestamp|tso|gso|gro|allowance_available")
_MAX_INTERFACES = 200


class Ethtool(Ask):
    """Counters whose names mean loss; of the others there are thousands. A counter that is 0 is told too, so that
    its first loss is seen, but at most 200 a card, those with losses first."""

    metrics = ("system.forwarding.dropped",)
    every_s = 10.0
    present = "ethtool --version"

    def command(self) -> str:
        """One call a card that has a device behind it; bridges, tunnels and the like have no such counters."""
        globs = self._wants.interfaces
        pick = "*" if globs is None else "|".join(_case(glob) for glob in globs)
        return (
            "for i in /sys/class/net/*/device; do i=${i%/device}; i=${i##*/}; "
            f'case "$i" in {pick}) echo "# $i"; ethtool -S "$i"; esac; done'
        )

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes the losses of each card."""
        card, counters = "", dict[str, int]()
        for line in [*lines(text), "# "]:
            if line.startswith("# "):
                for name in sorted(counters, key=lambda each: (counters[each] == 0, each))[:_MAX_INTERFACES]:
                    object_label = object_text(place=clean(card), reason=clean(name))
                    notes.sample("system.forwarding.dropped", object_label, counters[name])
                card, counters = line[2:].strip(), {}
                continue
            name, _, number = line.rpartition(":")
            value = whole(number.strip())
            if card and value is not None and value < 2**64 and is_loss(name):
                counters[name.strip()] = value


def is_loss(name: str) -> bool:
    """True for a counter whose name means loss.

    >>> [is_loss(name) for name in ("rx_missed_errors", "rx_out_of_buffer", "rx_packets", "tx_pause_ctrl_phy")]
    [True, True, False, False]
    """
    return _LOSS.search(name.lower()) is not None and _NONE.search(name.lower()) is None


def _case(glob: str) -> str:
    """A glob of the plan as a pattern of ``case``: only its wildcards keep their meaning."""
    return "".join(char if char in "*?" else shlex.quote(char) for char in glob)
