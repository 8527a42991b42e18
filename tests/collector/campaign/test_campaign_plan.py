"""What a campaign would run: the matrix with include and exclude, patches by path, the order, and every bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.collector.campaign.conftest import PLAN, Here, Write

MATRIX = """\
name: two
plan: plan.yaml
labels: {release: 7.10}
matrix:
  length: {set: phases.soak, values: [700ms, 900ms]}
  interval:
    - {name: slow, set: {targets.dut.sources.local.interval: 400ms}}
    - {name: fast, set: {targets.dut.sources.0.local.interval: 200ms}}
"""


def planned(here: Here, *words: object) -> dict[str, object]:
    """What ``campaign plan --json`` says."""
    done = here("campaign", "plan", "campaign.yaml", "--json", *words)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert isinstance(data, dict)
    return data


def cells(here: Here) -> list[str]:
    """The cells of the campaign, in order."""
    listed = planned(here)["cells"]
    assert isinstance(listed, list)
    return [cell["cell"] for cell in listed]


def test_the_matrix_is_the_product_less_exclude_with_include(here: Here, write: Write) -> None:
    """Exclude matches in part; include adds to cells that it does not contradict, or is a cell of its own."""
    write(
        MATRIX
        + "exclude: [{length: 900ms, interval: fast}]\n"
        + "include:\n"
        + "  - {length: 1s, interval: [slow, fast]}\n"
        + "  - {interval: slow, cooling: fan, set: {targets.dut.shared: true}}\n"
    )
    data = planned(here)
    listed = {cell["cell"]: cell for cell in data["cells"]}  # type: ignore[attr-defined]
    assert list(listed) == [
        "length=700ms,interval=slow",
        "length=700ms,interval=fast",
        "length=900ms,interval=slow",
        "length=1s,interval=slow",
        "length=1s,interval=fast",
    ]
    assert listed["length=700ms,interval=slow"]["labels"] == {"cooling": "fan"}
    assert listed["length=700ms,interval=slow"]["set"]["targets.dut.shared"] is True
    assert listed["length=1s,interval=slow"]["labels"] == {}, "an entry is added to cells of the product alone"
    assert listed["length=1s,interval=fast"]["set"] == {
        "phases.soak": "1s",
        "targets.dut.sources.0.local.interval": "200ms",
    }
    axes = {axis["name"]: axis["values"] for axis in data["axes"]}  # type: ignore[attr-defined]
    assert axes == {"length": ["700ms", "900ms", "1s"], "interval": ["slow", "fast"]}


def test_a_matrix_of_nothing_but_include_lists_its_cells(here: Here, write: Write) -> None:
    """Axes without values take them from include; a list there stands for several entries."""
    write(
        "plan: plan.yaml\nmatrix:\n  length: {set: phases.soak}\n  every: {set: targets.dut.sources.local.interval}\n"
        "include:\n  - {every: 200ms, length: [700ms, 900ms]}\n  - {every: 400ms, length: 1s}\n"
    )
    assert cells(here) == ["length=700ms,every=200ms", "length=900ms,every=200ms", "length=1s,every=400ms"]


def test_the_plan_of_a_cell_is_the_patched_one(here: Here, write: Write) -> None:
    """Paths by name and by position; a phase that is only a duration, and a source that is a word, get keys."""
    plan = PLAN.replace("[{local: {interval: 300ms}}]", "[local]")
    write(
        "plan: plan.yaml\nmatrix:\n  kind:\n    - {name: x, set: {phases.0.baseline.for: 600ms, phases.soak.for: 800ms,"
        " targets.dut.sources.local.interval: 250ms, rules.cpu_spike: false, web: false}}\n",
        plan,
    )
    done = here("campaign", "plan", "campaign.yaml", "--cell", "kind=x")
    assert done.returncode == 0, done.stderr
    for line in ("- baseline:\n    for: 600ms", "for: 800ms", "interval: 250ms", "cpu_spike: false", "web: false"):
        assert line in done.stdout
    assert "phases.soak.for: " in done.stdout


def test_numbers_are_called_as_they_are_written(here: Here, write: Write) -> None:
    """7, 7.0, 7.1 and 7.10 are four releases; the command before each run is what uses them."""
    write("plan: plan.yaml\nmatrix:\n  release: [7, 7.0, 7.1, 7.10]\nbefore: [./flash, '{release}']\n")
    assert cells(here) == ["release=7", "release=7.0", "release=7.1", "release=7.10"]


def test_a_number_becomes_a_word_of_a_command_as_it_is_written(here: Here, write: Write) -> None:
    """Words of commands are text, and a campaign's values are numbers: no quotes are asked for."""
    plan = PLAN.replace(
        "rules:", "  gen: {role: generator, sources: [{command: {interval: 300ms, run: [./load, '1']}}]}\nrules:"
    )
    axis = "{set: targets.gen.sources.command.run.1, values: [64, 1.50]}"
    write(f"plan: plan.yaml\nmatrix:\n  size: {axis}\ninclude: [{{size: [2.50, 3.0]}}]\n", plan)
    assert cells(here) == ["size=64", "size=1.50", "size=2.50", "size=3.0"]
    for word in ("1.50", "2.50", "3.0"):
        shown = here("campaign", "plan", "campaign.yaml", "--cell", f"size={word}")
        assert (shown.returncode, f'"{word}"' in shown.stdout) == (0, True), shown.stdout + shown.stderr


def test_blocks_hold_each_cell_once_and_follow_the_seed(here: Here, write: Write) -> None:
    """The same seed gives the same order, another one another; each block has every cell once."""

    def order(seed: int) -> list[list[str]]:
        write(MATRIX + f"repeat: 5\nseed: {seed}\n")
        runs = planned(here)["runs"]
        assert isinstance(runs, list)
        return [[run["cell"] for run in runs if run["repetition"] == n] for n in range(1, 6)]

    first = order(7)
    assert order(7) == first
    assert order(8) != first
    assert all(sorted(block) == sorted(first[0]) for block in first)
    assert len({tuple(block) for block in first}) > 1, "blocks are shuffled, not repeated"


def test_the_table_shows_cells_run_numbers_and_time(here: Here, write: Write) -> None:
    """Length and run numbers of each cell, and about how long it takes on the testbeds."""
    write(MATRIX + "repeat: 3\nrest: 10s\ntestbeds: {a: , b: {set: {targets.dut.shared: true}}}\n")
    done = here("campaign", "plan", "campaign.yaml")
    assert done.returncode == 0, done.stderr
    assert "4 cells, each 3 times; 12 runs in shuffled blocks" in done.stdout
    assert "on 2 testbeds (a, b), with 10 s of rest" in done.stdout
    assert "run no." in done.stdout
    both = here("campaign", "plan", "campaign.yaml", "--cell", "length=700ms,interval=slow").stdout
    assert "plan on a:" in both
    assert "plan on b:" in both
    assert both.count("shared: true") == 1


BASE = "name: x\nplan: plan.yaml\n"
SHARED = "matrix: {n: {set: targets.dut.shared, values: [true]}}\n"
WRONG = {
    "no matrix": (BASE, "campaign.yaml:1:1: the key 'matrix' is missing"),
    "no plan": ("matrix: {a: [{name: x, set: {duration: 1s}}]}\n", "campaign.yaml:1:1: the key 'plan' is missing"),
    "unknown key": (BASE + "matirx: {}\nmatrix: {a: [b]}\n", "campaign.yaml:3:1: unknown key 'matirx'"),
    "plan that is not there": (
        "plan: gone.yaml\nmatrix: {a: [{name: x, set: {web: false}}]}\n",
        "campaign.yaml:1:7: plan: ",
    ),
    "bare word": (
        BASE + "matrix:\n  kind: [L4, {name: L3, set: {phases.soak: 800ms}}]\n",
        "campaign.yaml:4:10: kind: 'L4' patches nothing: write {name: L4, set: {PATH: VALUE}}, or set: {} if",
    ),
    "value that is there already": (
        BASE + "matrix:\n  kind:\n    - {name: L3, set: {phases.soak: 700ms}}\n",
        "campaign.yaml:5:7: kind: 'L3' patches nothing: the plan has these values already",
    ),
    "two values that make one plan": (
        BASE + "matrix:\n  kind:\n    - {name: L3, set: {phases.soak: 1s}}\n    - {name: L4, set: {phases.1.soak: 1s}}",
        "campaign.yaml:6:7: kind: 'L4' makes the same plan as 'L3': one of them patches nothing",
    ),
    "values without a path": (
        BASE + "matrix:\n  n: {values: [1s, 2s]}\n",
        "campaign.yaml:4:3: the key 'set' is missing",
    ),
    "key of an axis that is no key": (
        BASE + "matrix:\n  n: {set: phases.soak, value: [1s, 2s]}\n",
        "campaign.yaml:4:25: unknown key 'value'; did you mean 'values'?",
    ),
    "key of a value that is no key": (
        BASE + "matrix:\n  n: [{name: x, sett: {web: false}}]\n",
        "campaign.yaml:4:17: unknown key 'sett'; did you mean 'set'?",
    ),
    "value that has nowhere to go": (
        BASE + "matrix:\n  n: [{name: x, value: 3}]\n",
        "campaign.yaml:4:17: n: value has no path to go to: give the axis one, or write set",
    ),
    "no value": (BASE + "matrix:\n  n: []\n", "campaign.yaml:4:6: n: has no value: write at least one"),
    "value that is a list": (
        BASE + "matrix:\n  n: [a, [b]]\nbefore: [./flash, '{n}']\n",
        "campaign.yaml:4:10: n: expected a word or a number, found a list",
    ),
    "two values of one name": (
        BASE + "matrix:\n  n: {set: phases.soak, values: [800ms, 900ms, 800ms]}\n",
        "campaign.yaml:4:48: n: two values are called '800ms' (the first in line 4): rename one",
    ),
    "path that is not there": (
        BASE + "matrix:\n  kind:\n    - {name: L3, set: {targets.dtu.shared: true}}\n",
        "campaign.yaml:5:44: kind=L3: plan.yaml has no 'dtu' at targets (path targets.dtu.shared); did you mean 'dut'?",
    ),
    "position that is not there": (
        BASE + "matrix:\n  n: {set: phases.7.soak, values: [1s]}\n",
        "campaign.yaml:4:36: n=1s: plan.yaml has 2 items, 0 to 1 at phases: there is none at 7",
    ),
    "phase that is not there": (
        BASE + "matrix:\n  n: {set: phases.stress.load, values: [10%]}\n",
        "n=10%: plan.yaml has no 'stress' at phases",
    ),
    "path into a value": (
        BASE + "matrix:\n  n: {set: targets.dut.role.x, values: [1]}\n",
        "n=1: plan.yaml has 'dut' at targets.dut.role, with nothing in it for 'x'",
    ),
    "value that the plan refuses": (
        BASE + "matrix:\n  n: {set: phases.soak, values: [1s, 1 parsec]}\n",
        "campaign.yaml:4:38: soak: 'parsec' in '1 parsec' is not a unit of time",
    ),
    "key that the plan does not know": (
        BASE + "matrix:\n  n:\n    - {name: x, set: {targets.dut.shaerd: true}}\n",
        "campaign.yaml:5:43: unknown key 'shaerd'; did you mean 'shared'? (in the cell n=x)",
    ),
    "load without a generator": (
        BASE + "matrix:\n  load: {set: phases.soak.load, values: [10%]}\n",
        "load: no generator is driven",
    ),
    "two axes of one path": (
        BASE + "matrix:\n  a: {set: phases.soak, values: [1s, 2s]}\n  b: {set: phases.1.soak, values: [3s, 4s]}\n",
        "campaign.yaml:5:3: b: changes phases.1.soak, which a changes too",
    ),
    "axis that is no word": (
        BASE + "matrix:\n  Packet size: {set: phases.soak, values: [1s]}\n",
        "campaign.yaml:4:3: matrix: 'Packet size' cannot name a label",
    ),
    "axis of a name that is taken": (
        BASE + "matrix:\n  cell: {set: phases.soak, values: [1s]}\n",
        "campaign.yaml:4:3: matrix: 'cell' is the campaign's own word",
    ),
    "label that is no word": (
        BASE + "labels: {Test Bed: a}\nmatrix: {n: {set: phases.soak, values: [1s]}}\n",
        "campaign.yaml:3:10: labels: 'Test Bed' cannot name a label",
    ),
    "exclude of an unknown value": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s, 2s]}}\nexclude: [{n: 3s}]\n",
        "campaign.yaml:4:15: exclude: n has no value '3s'",
    ),
    "exclude of an unknown axis": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s, 2s]}}\nexclude: [{m: 1s}]\n",
        "campaign.yaml:4:12: exclude: there is no axis 'm'; known here: n",
    ),
    "nothing left": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}}\nexclude: [{n: 1s}]\n",
        "no cell is left",
    ),
    "exclude of nothing": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s, 2s]}}\nexclude: [{n: [1s, ~]}]\n",
        "campaign.yaml:4:20: n: expected a word or a number, found nothing",
    ),
    "include that is no word": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s, 2s]}}\ninclude: [{n: {a: b}, set: {web: false}}]\n",
        "campaign.yaml:4:15: n: expected a word or a number, found keys and values",
    ),
    "include that adds nothing": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}}\ninclude: [{n: 1s}]\n",
        "campaign.yaml:4:11: include: adds nothing",
    ),
    "include of half a cell": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}, k: [{name: y, set: {web: false}}]}\ninclude: [{n: 3s}]\n",
        "campaign.yaml:4:11: include: no cell of the matrix has these values, and a cell of its own needs a value of k",
    ),
    "unknown testbed": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}, testbed: [a, c]}\ntestbeds: {a: , b: }\n",
        "campaign.yaml:3:60: testbed: there is no testbed 'c'; known here: a, b",
    ),
    "unknown testbed of all": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}}\ntestbeds: {rack-1: }\ntestbed: rack-2\n",
        "campaign.yaml:5:10: testbed: there is no testbed 'rack-2'; did you mean 'rack-1'?",
    ),
    "unknown word of a command": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}}\nbefore: [./flash, '{releas}']\n",
        "campaign.yaml:4:9: before: {releas} is no axis and no label",
    ),
    "repeat that is no number": (
        BASE + "matrix: {n: {set: phases.soak, values: [1s]}}\nrepeat: often\n",
        "campaign.yaml:4:9: repeat: expected 1 to 1000, or {until: {half_width: 2%, of: FIGURE}",
    ),
    "plan with a start": (
        "plan: {duration: 1s, start: 2026-01-01T00:00:00Z, targets: {dut: {sources: [local]}}}\n" + SHARED,
        "campaign.yaml:1:22: start: a run of a campaign starts when its turn comes",
    ),
    "figure that nobody knows": (
        BASE
        + "matrix: {n: {set: phases.soak, values: [1s]}}\nrepeat: {until: {half_width: 2%, of: load.rx.paket.rate}}\n",
        "campaign.yaml:4:38: of: ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_sentence_with_its_place(case: str, here: Here, write: Write) -> None:
    """File, line and column, and what to do; exit code 2."""
    text, sentence = WRONG[case]
    write(text)
    done = here("campaign", "plan", "campaign.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_problem_of_many_cells_is_told_once(here: Here, write: Write) -> None:
    """The first cell that has it is named."""
    write(
        BASE + "matrix:\n  n: {set: phases.soak, values: [1s, 2s]}\n  k: {set: targets.dut.role, values: [dot, dut]}\n"
    )
    done = here("campaign", "plan", "campaign.yaml")
    assert done.returncode == 2
    assert done.stderr.count("expected 'dut', 'generator' or 'monitor'") == 1, done.stderr
    assert "campaign.yaml:5:39: role: " in done.stderr
    assert "(in the cell n=1s,k=dot)" in done.stderr


def test_the_schema_of_campaigns_fits_what_is_accepted(here: Here, write: Write) -> None:
    """An editor that holds a campaign against the schema accepts these, and refuses an unknown key."""
    import jsonschema

    from soakwatch.core.yaml import parse

    schema = json.loads(here("schema", "campaign").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for text in (
        MATRIX + "repeat: 5\nexclude: [{length: 900ms, interval: fast}]\ninclude: [{length: 1s, interval: slow}]\n",
        MATRIX + "repeat: {until: {half_width: 2%, of: load.loss}, at_most: 12}\ntestbeds: {a: {set: {web: false}}}\n",
        MATRIX + "before: [./reset, '{length}']\nafter: {run: ./after.sh, timeout: 30s}\nretry: {inconclusive: 1}\n",
    ):
        assert list(validator.iter_errors(parse(text, "x").data)) == []
    assert list(validator.iter_errors(parse(MATRIX + "sede: 5\n", "x").data))


def test_the_digest_is_of_what_is_measured(here: Here, write: Write, tmp_path: Path) -> None:
    """Another plan is another campaign; another table, or more repetitions, are not."""
    write(MATRIX)
    digest = planned(here)["digest"]
    write(MATRIX + "repeat: 9\nrest: 5s\nweb: true\n")
    assert planned(here)["digest"] == digest
    write(MATRIX, PLAN.replace("300ms", "350ms").replace("500ms", "550ms"))
    assert planned(here)["digest"] != digest
