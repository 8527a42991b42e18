"""Parsers and the terminal's lines under text that is cut, spoilt, mixed and endless: no exception, no hang, bounds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from tests.collector.sources.network_cli.conftest import OUTPUTS, output

from soakwatch.sources.platforms.parsed import KEPT_UNKNOWN, MAX_LINE_LENGTH, Parsed
from soakwatch.sources.profiles import loading as platforms
from soakwatch.sources.transport.network_cli.screen import last_line, shown
from soakwatch_model.metric import fault_of

LINES = 2_000
ROUNDS, ROUNDS_OF_THE_SLOW_SET = 12, 60
COMMANDS = [
    (platform, command.name)
    for platform in platforms.platform_names()
    for command in platforms.platform(platform).commands
]
_NOISE = (
    "%LINK-3-UPDOWN: Interface Gi0/1, changed state to down",
    " --More-- ",
    "\x1b[2J\x1b[?25h",
    "\x00\xff\ud800" * 5,
    "9" * 400,
    "-" * 300,
    "{" * 5000,
    '{"a":' * 3000,
    "(" * 200 + ")" * 200,
    " " * 1500 + "x",
    "a " * 900,
    "1 " * 900,
    "٣٤٥ 12",
    ": : : : = = =",
    "1e309 NaN inf -0 -1 0x10",
)


def _spoilt(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(dice.randint(1, 6)):
        what, number = dice.randrange(7), dice.randrange(len(lines))
        line = lines[number]
        if what == 0:
            lines.insert(number, dice.choice(_NOISE))
        elif what == 1:
            lines[number] = line[: dice.randint(0, len(line))]
        elif what == 2:
            lines[number] = line + dice.choice(_NOISE)
        elif what == 3:
            lines[number] = "".join(chr(dice.randrange(32, 0x300)) if dice.random() < 0.2 else char for char in line)
        elif what == 4:
            lines[number] = line.replace(" ", "")
        elif what == 5:
            lines[number] = "".join(dice.choice("0123456789-.,%kMG") if char.isdigit() else char for char in line)
        else:
            dice.shuffle(lines)
    joined = "\n".join(lines)
    return joined[: dice.randint(0, len(joined))] if dice.random() < 0.3 else joined


def _checked(parsed: Parsed) -> None:
    assert all(fault_of(value.metric, value.value) is None for value in parsed.values)
    assert len(parsed.unknown) <= KEPT_UNKNOWN
    assert all(len(word) <= 120 for word in parsed.unknown)
    assert all(text.isprintable() for text in parsed.facts.values())


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(ROUNDS_OF_THE_SLOW_SET, marks=pytest.mark.slow)])
@pytest.mark.parametrize("platform", list(platforms.platform_names()))
def test_spoilt_outputs_are_read_without_an_exception(platform: str, rounds: int) -> None:
    for command in platforms.platform(platform).commands:
        dice = random.Random(f"{platform}/{command.name}")
        text = output(platform, command.name)
        for _ in range(rounds):
            _checked(command.parse(_spoilt(text, dice)))


def _evil() -> Iterator[str]:
    """A backtracking expression takes minutes for them: up to 40 kB of what nearly matches."""
    for piece in ("a", " ", "1", "a ", "1 ", "(", "| ", "-", "0,", "9.", "x: ", "Queue: 1, ", "1w", "CPU0 states: "):
        yield piece * (MAX_LINE_LENGTH // len(piece))
        yield "\n".join([piece * (MAX_LINE_LENGTH // len(piece) - 1)] * 20)


EVIL = tuple(_evil())


@pytest.mark.parametrize("texts", [EVIL[:12:2], pytest.param(EVIL, marks=pytest.mark.slow)], ids=["lines", "all"])
@pytest.mark.parametrize("platform", list(platforms.platform_names()))
def test_no_expression_takes_more_than_its_share_of_time(platform: str, texts: tuple[str, ...]) -> None:
    """Of processor time: what else the machine does is no matter."""
    for command in platforms.platform(platform).commands:
        head = output(platform, command.name)
        begun = time.process_time()
        for text in texts:
            command.parse(f"{head}\n{text}")
        assert time.process_time() - begun < 20


@pytest.mark.parametrize("platform", list(platforms.platform_names()))
def test_a_whole_answer_of_rubbish_is_bounded(platform: str) -> None:
    rubbish = "what is this line 12 34 56\n" * LINES
    for command in platforms.platform(platform).commands[:2]:
        parsed = command.parse(rubbish)
        assert len(parsed.unknown) <= KEPT_UNKNOWN
        assert len(parsed.values) <= LINES


@pytest.mark.parametrize("render", [shown, last_line])
def test_any_bytes_can_be_shown(render: Callable[[str], str]) -> None:
    dice = random.Random(7)
    alphabet = "ab \r\n\b\t\x07\x1b[]0123456789;DCGKHJm?\x9b\x00"
    for _ in range(2000):
        text = "".join(dice.choice(alphabet) for _ in range(dice.randint(0, 200)))
        assert len(render(text)) <= 5000 * (text.count("\n") + 1)
    assert shown("\x1b[999999999C!" * 50).count("!") >= 1
    assert len(shown("\x1b[9999Cx" * 1000)) < 6000


def test_every_output_here_is_used() -> None:
    names = {(folder.name, file.stem) for folder in OUTPUTS.iterdir() for file in folder.glob("*.txt")}
    assert names - {("arista-eos", "show_processes_top.text")} == set(COMMANDS), (
        "outputs/PLATFORM/COMMAND.txt: one a command"
    )
