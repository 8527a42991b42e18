"""What a device says about itself: version, model, serial, the reason of its last restart."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.sources.profiles.profile_model import Fact, Profile
from soakwatch.sources.profiles.rows import by_column, index_key
from soakwatch.sources.profiles.value import Asker, Value, text

MAX_ROWS = 8  # of a fact that joins rows


async def read_facts(asker: Asker, profile: Profile) -> dict[str, str]:
    """The facts of a profile that the device tells. Raises what the asker raises."""
    whole = tuple(dict.fromkeys(oid for fact in profile.facts if not fact.column for oid in fact.oids))
    bases = tuple(dict.fromkeys(oid for fact in profile.facts if fact.column for oid in fact.oids))
    values = await asker.get(whole) if whole else {}
    tree = by_column(bases, await asker.walk(bases) if bases else {})
    facts = {fact.name: _words(fact, values, tree) for fact in profile.facts}
    return {name: words for name, words in facts.items() if words}


def _words(fact: Fact, values: Mapping[str, Value], tree: Mapping[str, Mapping[str, Value]]) -> str:
    for oid in fact.oids:
        if fact.column:
            rows = [_meaning(fact, tree[oid][index]) for index in sorted(tree[oid], key=index_key)]
            reported = list(dict.fromkeys(row for row in rows if row))
            if reported:
                return ", ".join(reported[:MAX_ROWS]) if fact.joined else reported[0]
        elif oid in values and (words := _meaning(fact, values[oid])):
            return words
    return ""


def _meaning(fact: Fact, value: Value) -> str:
    words = text(value, fact.form)
    if fact.match is not None:
        match = fact.match.search(words)
        words = (match[1] if fact.match.groups else match[0]) or "" if match is not None else ""
    return fact.values.get(words, words)
