"""Firewall (iptables): packets counted by rules that drop or reject, and by policies that drop."""

from __future__ import annotations

import re

from soakwatch.sources.transport.ssh.ask import Ask, lines
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_TABLE = re.compile(r"\*(\S+)")
_POLICY = re.compile(r":(\S+) (\S+) \[(\d{1,20}):\d+\]")
_RULE = re.compile(r"\[(\d{1,20}):\d+\] -A (\S+) (.*?)-j (DROP|REJECT)\b")
_MAX_RULES = 500


class Iptables(Ask):
    """Of ``iptables-save -c`` and ``ip6tables-save -c``: exact, and a rule goes by its own text, not by its number.
    Where iptables only fronts nftables and ``nft`` is there, that is asked instead: the same rules are counted once."""

    metrics = ("system.forwarding.denied",)
    every_s = 10.0
    present = "iptables-save -c && { ! command -v nft || ! iptables -V | grep -q nf_tables; }"

    def command(self) -> str:
        """Both families, each under a line of its own."""
        return "echo '#4'; iptables-save -c; echo '#6'; ip6tables-save -c"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes each rule and policy that drops; rules of the same text are added up."""
        family = table = ""
        drops: dict[str, int] = {}
        for line in lines(text):
            if line in ("#4", "#6"):
                family = "iptables" if line == "#4" else "ip6tables"
            elif (match := _TABLE.fullmatch(line)) is not None:
                table = match[1]
            elif (match := _POLICY.fullmatch(line)) is not None and match[2] == "DROP":
                object_label = object_text(place=clean(f"{family} {table} {match[1]}"), reason="policy DROP")
                drops[object_label] = drops.get(object_label, 0) + int(match[3])
            elif (match := _RULE.match(line)) is not None and len(drops) < _MAX_RULES:
                reason = f"{match[3].strip()} {match[4]}".strip()[:200]
                object_label = object_text(place=clean(f"{family} {table} {match[2]}"), reason=clean(reason))
                drops[object_label] = drops.get(object_label, 0) + int(match[1])
        for object_label, packets in drops.items():
            notes.sample("system.forwarding.denied", object_label, packets)
