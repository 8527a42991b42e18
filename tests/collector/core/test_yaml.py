"""The plan's syntax: what is data, what is refused, and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.core.errors import PlanError
from soakwatch.core.yaml import MAX_NODES, Plain, dump, parse, read_text


def _bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("1:30", "1:30"),
        ("08", 8),
        ("010", 10),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("1.50", 1.5),
        ("2026-11-27T20:00:00Z", "2026-11-27T20:00:00Z"),
        ("~", None),
        ("'08'", "08"),
        ('"true"', "true"),
        ("!!str 08", "08"),
        ("24h", "24h"),
        ("5%", "5%"),
        ("=", "="),
    ],
)
def test_words_mean_what_they_look_like(text: str, expected: object) -> None:
    """Of YAML 1.1's readings only true, false, null and decimal numbers are left; all else is text."""
    data = parse(f"key: {text}\n", "p.yaml").data
    assert isinstance(data, dict)
    assert data["key"] == expected
    assert type(data["key"]) is type(expected)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["p.yaml: is empty: 'soakwatch init' writes a plan to start from"]),
        ("# only a remark\n", ["p.yaml: is empty: 'soakwatch init' writes a plan to start from"]),
        ("a: b\n\tc: d", ["p.yaml:2:1: a tab cannot indent or separate here: use spaces"]),
        ("a:\tb", ["p.yaml:1:3: a tab cannot indent or separate here: use spaces"]),
        ("a: b: c", ["p.yaml:1:5: a second ':' in one line: put the text in quotes, or start a new line"]),
        ("a: [1, 2", ["p.yaml:1:9: a ',' or ']' is missing"]),
        ("a: {b: 1", ["p.yaml:1:9: a ',' or '}' is missing"]),
        ("a: 'x", ["p.yaml:1:6: a quote or bracket is never closed"]),
        ("a: @x", ["p.yaml:1:4: text cannot start with this character: put it in quotes"]),
        ("a: *x", ["p.yaml:1:4: an alias (*) has no anchor (&) before it: quote text that starts with *"]),
        ("a: 1\n---\nb: 2", ["p.yaml:2:1: a second document starts here: a plan is one document"]),
        ("a: !x 1", ["p.yaml:1:4: a tag (!) has no meaning in a plan: remove it, or quote text that starts with !"]),
        (
            "a: 1\nb: {c: 1, c: 2}\na: 2",
            [
                "p.yaml:2:11: the key 'c' is given twice (first in line 2): remove one",
                "p.yaml:3:1: the key 'a' is given twice (first in line 1): remove one",
            ],
        ),
        (
            "a: &x [1]\nc: {<<: *x}",
            ["p.yaml:1:8: a merge key (<<) takes keys and values of an anchor, such as <<: *common"],
        ),
        ("a: &x {b: {<<: *x}}", ["p.yaml:1:4: an anchor contains itself: remove the alias"]),
        ("? [a]\n: 1", ["p.yaml:1:3: a key must be a word, not a list or keys and values"]),
        ("a: &x [*x]", ["p.yaml:1:4: an anchor contains itself: remove the alias"]),
        ("[" * 60, ["p.yaml:1:41: is nested more than 40 deep: that is not a plan"]),
        ('a: "\\e[2J"', ["p.yaml:1:4: the character U+001B is not allowed in a plan: remove it"]),
        ('a: "\\ud800"', ["p.yaml:1:4: the character U+D800 is not allowed in a plan: remove it"]),
        ('"\\0": 1', ["p.yaml:1:1: control characters are not allowed in keys: remove them"]),
        ("a: \x01", ["p.yaml:1:4: the character U+0001 is not allowed in a plan: remove it"]),
    ],
)
def test_bad_syntax_is_reported_with_its_line(text: str, problems: list[str]) -> None:
    """Each error of syntax is one sentence with line, column and remedy; duplicate keys are all reported at once."""
    with pytest.raises(PlanError) as caught:
        parse(text, "p.yaml")
    assert list(caught.value.problems) == problems
    assert str(caught.value) == problems[0]


def test_a_merge_key_brings_what_is_not_written_out() -> None:
    """What is written out wins, then the first of several anchors; places are those where a value stands."""
    document = parse("a: &x {b: 1, c: {d: 2}}\ne:\n  <<: [*x, {g: 3, b: 9}]\n  b: 5\n", "p.yaml")
    assert document.data == {"a": {"b": 1, "c": {"d": 2}}, "e": {"b": 5, "c": {"d": 2}, "g": 3}}
    assert document.where(("e", "c", "d")) == "p.yaml:1:21"
    assert document.where(("e", "b")) == "p.yaml:4:6"
    assert parse("a: '<<'\n'<<': 1", "p.yaml").data == {"a": "<<", "<<": 1}


def test_merges_of_merges_stop_at_the_bound() -> None:
    """Also where every key is written out already, so that nothing is added."""
    lines = ["x0: &x0 {k: 1}"]
    lines += [f"x{n}: &x{n} {{k: 1, <<: [{', '.join([f'*x{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    with pytest.raises(PlanError, match=r"has more than 200,000 values, [0-9,]+ of them by aliases: use fewer aliases"):
        parse("\n".join(lines), "p.yaml")


def test_a_plan_with_too_many_values_of_its_own_is_not_told_of_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The true limit, and what helps."""
    monkeypatch.setattr("soakwatch.core.yaml.MAX_NODES", 1000)
    with pytest.raises(PlanError, match="the plan has more than 1,000 values: make several plans of it"):
        parse("- [" + "1," * 1000 + "1]\n", "p.yaml")


def test_a_file_that_unfolds_without_bound_is_refused() -> None:
    """Aliases of aliases that would make half a billion values stop at the bound, with one sentence."""
    with pytest.raises(PlanError) as caught:
        parse(_bomb(), "p.yaml")
    assert len(caught.value.problems) == 1
    assert f"has more than {MAX_NODES:,} values, " in caught.value.problems[0]
    assert caught.value.problems[0].endswith(" of them by aliases: use fewer aliases")


def test_aliases_of_modest_size_are_data() -> None:
    """An anchor may be used again; both places hold the same data."""
    assert parse("a: &x [1, 2]\nb: *x\n", "p").data == {"a": [1, 2], "b": [1, 2]}


def test_places_of_keys_and_values() -> None:
    """Every key and value is found again by line and column, and a missing one by what is around it."""
    document = parse("a:\n  - b: 1\n  - c:  {d: 2}\n", "p.yaml")
    assert document.where(("a", 0, "b")) == "p.yaml:2:8"
    assert document.where(("a", 1, "c"), key=True) == "p.yaml:3:5"
    assert document.where(("a", 1, "c", "d")) == "p.yaml:3:13"
    assert document.where(("a", 1, "c", "missing")) == "p.yaml:3:9"


def test_files_that_are_no_text_are_reported_in_one_sentence(tmp_path: Path) -> None:
    """A folder, a missing file, bytes that are not UTF-8 and a huge file each say what they are."""
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: x\nb: \xe9\n")
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * 4_000_001)
    expected = {
        tmp_path: f"{tmp_path} is a folder: name the plan file",
        tmp_path / "none.yaml": f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory",
        latin: f"{latin}:2:4: is not UTF-8: save the plan as UTF-8",
        huge: f"{huge}: has more than 4,000,000 bytes: that is not a plan",
    }
    for file, sentence in expected.items():
        with pytest.raises(PlanError) as caught:
            read_text(file)
        assert str(caught.value) == sentence


def test_a_byte_order_mark_is_no_part_of_the_plan(tmp_path: Path) -> None:
    """A file saved with a byte order mark reads like one without."""
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert parse(read_text(file), "bom").data == {"a": 1}


_leaf = (
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.text(st.characters(exclude_categories=["C"]), max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False)
)
_plain: st.SearchStrategy[Plain] = st.recursive(
    _leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abon1:-% ", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["a", "on", "08", "1:30", "null", "x y"]), _plain, min_size=1, max_size=4))
def test_what_is_written_reads_back(data: dict[str, Plain]) -> None:
    """The YAML that goes into a record gives the same data, whatever the words look like."""
    assert parse(dump(data), "p").data == data


@pytest.mark.parametrize("code", ["\\UFFFFFFFF", "\\U00110000", "\\U7FFFFFFF"])
def test_an_escape_that_is_no_character_is_refused_with_its_line(code: str) -> None:
    """One sentence; PyYAML lets what chr() raises through."""
    with pytest.raises(PlanError, match=r"^plan\.yaml:2:\d+: an escape in quotes \(\\U…\) names no character"):
        parse(f'name: a\nlabels: {{b: "{code}"}}\n', "plan.yaml")
