"""The bench without gear: what its device carries by its sheet, its generators as a run drives them, and its end."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from tests.collector.sources.loads.generator_kit import Load, acted
from tests.commands import wait_until

from soakwatch_model.sample import Answer
from soakwatch_testing.device_model import BadSheetError, DeviceModel, read_sheet
from soakwatch_testing.ports import free_port

SHEET = """\
generator: {generator}
line: 10e9
cells:
  - {{cores: 2, busy: 2, watts: [20, 30], noise: {noise}}}
  - {{when: {{size: "64"}}, frame: 64, packets: 2e6}}
  - {{when: {{size: "512"}}, frame: 512, bits: 4.096e9}}
  - {{when: {{config: ips}}, times: 50%}}
  - {{when: {{config: tunnel}}, overhead: 70, out: 10e9}}
  - {{when: {{config: table}}, loss: {{20%: 0, 30%: 20%}}}}
  - {{when: {{config: nat}}, connections: 1000, established: 5e4}}
"""


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    """A sheet for TRex, without noise."""
    return written(tmp_path, "trex")


def written(folder: Path, generator: str, noise: str = "0") -> Path:
    """A sheet."""
    file = folder / "device.yaml"
    file.write_text(SHEET.format(generator=generator, noise=noise), encoding="utf-8")
    return file


def test_the_device_carries_what_its_sheet_says(sheet: Path) -> None:
    """Packets, bits, a layer's share, a tunnel on the line, a table of losses; a loss is of what is too much."""
    of = read_sheet(sheet)

    def lost(offered: float, **words: str) -> float:
        return DeviceModel(of, words).lost(offered)

    assert lost(2e6, size="64") == 0.0
    assert lost(4e6, size="64") == pytest.approx(0.5)
    assert lost(2e6, size="512") == pytest.approx(0.5)
    assert lost(2e6, size="64", config="ips") == pytest.approx(0.5)
    assert DeviceModel(of, {"size": "512", "config": "tunnel"}).capacity == pytest.approx(4.096e9 / 8 / 582)
    assert DeviceModel(of, {"config": "tunnel"}).capacity == pytest.approx(10e9 / 8 / 154)
    line = 10e9 / 8 / 84
    assert [round(lost(share * line, config="table"), 6) for share in (0.1, 0.2, 0.25, 0.3, 0.5)] == [
        0,
        0,
        0.1,
        0.2,
        0.2,
    ]


def test_runs_differ_by_their_seed_alone(tmp_path: Path) -> None:
    """The coefficient of variation is that of the sheet."""
    of = read_sheet(written(tmp_path, "trex", "2%"))
    seen = [DeviceModel(of, {"size": "64"}, str(seed)).capacity or 0.0 for seed in range(400)]
    assert seen[7] == DeviceModel(of, {"size": "64"}, "7").capacity
    mean = sum(seen) / len(seen)
    spread = (sum((value - mean) ** 2 for value in seen) / len(seen)) ** 0.5
    assert mean == pytest.approx(2e6, rel=0.005)
    assert spread / mean == pytest.approx(0.02, rel=0.15)


def test_what_a_sheet_does_not_know_is_an_error(sheet: Path, tmp_path: Path) -> None:
    """A word that is misspelt has no figures; a key that is misspelt has no meaning."""
    of = read_sheet(sheet)
    with pytest.raises(BadSheetError, match="size=65: the sheet knows 512, 64 of size"):
        DeviceModel(of, {"size": "65"})
    with pytest.raises(BadSheetError, match="sise=64: the sheet knows nothing of sise"):
        DeviceModel(of, {"sise": "64"})
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("generator: trex\ncells: [{frames: 64}]\n", encoding="utf-8")
    with pytest.raises(BadSheetError, match="frames"):
        read_sheet(wrong)
    with pytest.raises(BadSheetError, match="No such file"):
        read_sheet(tmp_path / "none.yaml")


class Stand:
    """A bench in the background, as a campaign starts it."""

    def __init__(self) -> None:
        self.generator, self.page = free_port(), free_port()

    def make(self, sheet: Path, words: Sequence[str], idle: str = "60s") -> subprocess.CompletedProcess[str]:
        """Make it stand for a cell."""
        ports = ["--generator-port", str(self.generator), "--page", str(self.page), "--idle", idle]
        return self._bench(str(sheet), *words, *ports)

    def end(self) -> None:
        """End it."""
        self._bench("none", "--page", str(self.page), "--end")

    def metrics(self) -> dict[str, float]:
        """What its exporter says."""
        lines = httpx.get(f"http://127.0.0.1:{self.page}/metrics", verify=False, timeout=240).text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if "#" not in line)}

    def gone(self) -> bool:
        """Whether nothing listens there; this asks it nothing."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.page)) != 0

    @staticmethod
    def _bench(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "soakwatch_testing.device_bench", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def stand() -> Iterator[Stand]:
    """Ports for a bench, which is ended with the test."""
    stand = Stand()
    yield stand
    stand.end()


async def _loaded(load: Load) -> list[Answer]:
    """Polls at full rate."""
    await load.poll()
    await load.drive(1.0)
    return [await load.poll() for _ in range(4)]


def share_lost(answers: Sequence[Answer]) -> float:
    """The lost share between the first and the last poll."""
    sent, back = (
        [next(s.value for s in each.samples if s.metric == metric) for each in (answers[0], answers[-1])]
        for metric in ("load.tx.packets", "load.rx.packets")
    )
    return 1 - (back[1] - back[0]) / (sent[1] - sent[0])


@pytest.mark.parametrize("generator", ["trex", pytest.param("pktgen", marks=pytest.mark.slow)])
def test_a_generator_is_driven_and_its_device_works(tmp_path: Path, stand: Stand, generator: str) -> None:
    """At 10 Gbit/s of small packets the device loses all above its capacity, and its CPU and power say that it works;
    the next cell is taken by the bench that stands there."""
    sheet = written(tmp_path, generator)
    ports: dict[str, object] = {"ports": [0], "rate": "10gbpsl1"} if generator == "trex" else {"send": "0"}
    keys: dict[str, object] = {"host": "127.0.0.1", "port": stand.generator, "interval": "3s", "drive": True, **ports}
    done = stand.make(sheet, ["size=64"])
    assert done.returncode == 0, done.stderr
    rest = stand.metrics()
    assert share_lost(acted(generator, keys, _loaded)) == pytest.approx(1 - 2e6 / (10e9 / 8 / 84), abs=0.001)
    assert stand.metrics()['node_cpu_seconds_total{cpu="1",mode="system"}'] > 0
    assert rest['node_hwmon_power_average_watt{chip="psu",sensor="power1"}'] == pytest.approx(20, rel=0.03)
    assert stand.make(sheet, ["size=512"]).returncode == 0
    assert share_lost(acted(generator, keys, _loaded)) == pytest.approx(1 - 1e6 / (10e9 / 8 / 532), abs=0.001)


def test_connections_are_opened_by_an_astf_that_is_only_read(tmp_path: Path, stand: Stand) -> None:
    """Its rate is that of the sheet, within what a second differs from the next."""
    assert stand.make(written(tmp_path, "astf"), ["config=nat"]).returncode == 0

    async def polls(load: Load) -> list[Answer]:
        return [await load.poll() for _ in range(2)]

    last = acted("trex", {"host": "127.0.0.1", "port": stand.generator, "interval": "3s"}, polls)[-1]
    values = {sample.metric: sample.value for sample in last.samples}
    assert values["load.connection.rate"] == pytest.approx(1000, rel=0.02)
    assert values["load.connections"] == 50_000


def test_a_bench_that_nobody_asks_ends(sheet: Path, stand: Stand) -> None:
    """Nothing is left behind by a campaign that was killed; a cell that does not exist starts nothing."""
    wrong = stand.make(sheet, ["size=65"])
    assert (wrong.returncode, wrong.stderr) == (2, "device_bench: size=65: the sheet knows 512, 64 of size\n")
    assert stand.gone()
    assert stand.make(sheet, ["size=64"], idle="1s").returncode == 0
    wait_until(stand.gone, "the end of the bench")
