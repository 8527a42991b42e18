"""Firewall (nftables): packets counted by rules that drop or reject, and by named counters of drops."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.sources.transport.ssh.ask import Ask, parsed, rows, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text
from soakwatch_model.tree import Tree

_LOSS = ("drop", "reject", "deny", "denied", "block")
_MAX_RULES = 500


class Nft(Ask):
    """Of ``nft -j -t list ruleset``. A rule goes by its comment, else by its handle, which lasts until the rules are
    loaded anew; a rule without ``counter`` cannot be told."""

    metrics = ("system.forwarding.denied",)
    every_s = 10.0
    present = "nft -j -t list ruleset"

    def command(self) -> str:
        """The contents of sets are left out: they may be large."""
        return "nft -j -t list ruleset"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes each counter of drops."""
        reported = parsed(text)
        listed = rows(reported.get("nftables")) if isinstance(reported, dict) else []
        drops: dict[str, int] = {}
        for each in listed:
            rule, counter = each.get("rule"), each.get("counter")
            if isinstance(rule, dict):
                packets, reason = _of_rule(rule)
                chain = rule.get("chain")
                location = f"nft {rule.get('family')} {rule.get('table')} {chain}"
            elif isinstance(counter, dict):
                name = str(counter.get("name"))
                packets = whole(counter.get("packets")) if any(word in name.lower() for word in _LOSS) else None
                reason, location = name, f"nft {counter.get('family')} {counter.get('table')}"
            else:
                continue
            if packets is not None and len(drops) < _MAX_RULES:
                object_label = object_text(place=clean(location), reason=clean(reason))
                drops[object_label] = drops.get(object_label, 0) + packets  # rules of one comment are one reason
        for object_label, packets in drops.items():
            notes.sample("system.forwarding.denied", object_label, packets)


def _of_rule(rule: Mapping[str, Tree]) -> tuple[int | None, str]:
    parts = rows(rule.get("expr"))
    if not any("drop" in each or "reject" in each for each in parts):
        return None, ""
    counters = [each["counter"] for each in parts if isinstance(each.get("counter"), dict)]
    packets = whole(counters[0].get("packets")) if counters and isinstance(counters[0], dict) else None
    comment = rule.get("comment")
    return packets, comment if isinstance(comment, str) and comment else f"rule {rule.get('handle')}"
