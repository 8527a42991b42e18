"""The results of a drill: rows for people, Markdown, and a document for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from soakwatch.core.units import show_seconds
from soakwatch.judge.drill.trials import KindTried, SizeTried
from soakwatch_rules.wording.quantities import percent

SCHEMA: Final = 1
"""The version of the document."""
HEAD: Final = ("fault", "size", "found", "fails", "its rules state", "found by")
TRIED_HEAD: Final = ("fault", "at", "found of places, by size")


def size_text(unit: str, size: float) -> str:
    """A size in words.

    >>> size_text("1", 0.0003), size_text("1", 2.0), size_text("s", 90)
    ('0.03 %', '200 %', '1 min 30 s')
    """
    return show_seconds(size) if unit == "s" else percent(size)


def limit_text(kind: KindTried, smallest: float | None) -> str:
    """The smallest size that was seen; says so if even the smallest one tried was, or none was."""
    if not kind.tried:
        return "not tried"
    unit = kind.kind.unit
    if smallest is None:
        return f"none up to {size_text(unit, kind.tried[-1].size)}"
    text = size_text(unit, smallest)
    return f"{text} or less" if smallest == kind.tried[0].size else text


def rows(results: Iterable[KindTried]) -> list[tuple[str, ...]]:
    """One row a kind: what this run would have seen, next to what its rules state."""
    return [
        (
            result.kind.name,
            result.kind.what,
            limit_text(result, result.smallest_found),
            limit_text(result, result.smallest_failed),
            ", ".join(f"{rule} {size_text(result.kind.unit, size)}" for rule, size in result.stated.items()) or "–",
            ", ".join(_finders(result)) or "–",
        )
        for result in results
    ]


def _finders(result: KindTried) -> list[str]:
    """The rules that found the smallest size seen; if none was seen, those that found any."""
    at = [each for each in result.tried if each.size == result.smallest_found] or result.tried
    return sorted({rule for each in at for rule in each.rules})


def tried_rows(results: Iterable[KindTried]) -> list[tuple[str, ...]]:
    """One row a kind: its subjects, and in how many places each size was found."""
    return [
        (
            result.kind.name,
            ", ".join(result.subjects) or "–",
            ", ".join(_tried(result.kind.unit, each) for each in result.tried) or result.note,
        )
        for result in results
    ]


def _tried(unit: str, tried: SizeTried) -> str:
    doubt = (
        f" (+{tried.undecided} undecided)" if tried.undecided and tried.undecided + tried.found <= tried.places else ""
    )
    return f"{size_text(unit, tried.size)}: {tried.found} of {tried.places}{doubt}"


def notes(results: Iterable[KindTried]) -> list[str]:
    """What was not tried, and why."""
    return [f"{result.kind.name}: {result.note}" for result in results if result.note]


def markdown(title: str, results: Sequence[KindTried]) -> str:
    lines = [f"## {_cell(title)}", ""]
    for head, body in ((HEAD, rows(results)), (TRIED_HEAD, tried_rows(results))):
        lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in body]
        lines.append("")
    lines += [f"- {_cell(note)}" for note in notes(results)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def document(run: str, seed: int, places: int, results: Iterable[KindTried]) -> dict[str, object]:
    """The drill for scripts: sizes are shares or seconds according to ``unit``; null: never seen."""
    return {
        "drill": SCHEMA,
        "run": run,
        "seed": seed,
        "places": places,
        "kinds": [
            {
                "kind": result.kind.name,
                "size": result.kind.what,
                "unit": result.kind.unit,
                "subjects": list(result.subjects),
                "smallest_found": result.smallest_found,
                "smallest_failed": result.smallest_failed,
                "stated": dict(result.stated),
                "sizes": [_size(each) for each in result.tried],
                "note": result.note,
            }
            for result in results
        ],
    }


def _size(tried: SizeTried) -> Mapping[str, object]:
    return {
        "size": tried.size,
        "places": tried.places,
        "found": tried.found,
        "failed": tried.failed,
        "undecided": tried.undecided,
        "rules": dict(tried.rules),
    }
