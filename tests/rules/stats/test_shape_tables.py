"""The tables of shapes: made once while they are asked for, and few at a time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from soakwatch_rules.stats import series_shapes
from soakwatch_rules.stats.series_shapes import ShapeTable, table


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No tables at first; what is in memory before, the whole suite, is neither searched nor counted."""
    monkeypatch.setattr(series_shapes, "_TABLES", series_shapes._Tables())
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def there() -> int:
    """How many tables are in memory that a test has made."""
    gc.collect()
    return sum(isinstance(each, ShapeTable) for each in gc.get_objects())


def test_a_table_that_is_asked_for_now_and_then_is_made_once() -> None:
    """Two lengths in turn: both stay."""
    for _ in range(3):
        first = [table(n) for n in (16, 17)]
        for _ in range(40):
            assert all(table(n) is one for n, one in zip((16, 17), first, strict=True))


def test_a_run_that_grows_leaves_no_table_of_a_length_behind() -> None:
    """A length that nobody asks for any more goes, and never are there many at once."""
    for n in range(16, 30):
        table(n)
        assert there() <= 8
    for _ in range(40):
        table(30)
    assert there() == 1
