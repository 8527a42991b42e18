"""``deploy/release``: what it refuses, what it makes, and that this can be installed without a network."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from releasing import prove
from releasing.debian import lay_help
from releasing.repacked import leave_out_tests
from releasing.source import ReleaseError, Source, export
from releasing.wheels import SUMS, Target, pack, remove_release, target_of, write_sums
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
_MAKING_S = 3600
_MACHINES = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "windows", "aarch64-apple-darwin")


def run(*words: object, timeout: float = 120, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the checkout."""
    command = [str(word) for word in words]
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a version 1.2.0, a plug-in of the same, and the tags v1.2.0 and v1.3.0 on one commit."""
    root = tmp_path / "project"
    plugin = root / "collector/plugins/trex"
    plugin.mkdir(parents=True)
    for folder, name in ((root, "soakwatch"), (plugin, "soakwatch-trex")):
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "1.2.0"\n')
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "tag.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["tag", "v1.2.0"], ["tag", "v1.3.0"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    return root


def test_a_release_is_of_the_tag_of_its_version(project: Path, tmp_path: Path) -> None:
    """A tag that is not there, or stands at another version, is refused by name; a changed file is not in it."""
    (project / "pyproject.toml").write_text("not committed")
    source = export(project, "v1.2.0", tmp_path / "tree")
    assert (source.version, [folder.name for folder in source.projects]) == ("1.2.0", ["tree", "trex"])
    assert (source.tree / "pyproject.toml").read_text().endswith('version = "1.2.0"\n')
    with pytest.raises(ReleaseError, match="there is no tag 'v9' here"):
        export(project, "v9", tmp_path / "a")
    with pytest.raises(
        ReleaseError, match=r"the tag v1\.3\.0 stands at version 1\.2\.0: the tag of that version is v1\.2\.0"
    ):
        export(project, "v1.3.0", tmp_path / "b")


def test_the_debian_package_brings_manual_pages_and_completion(tmp_path: Path) -> None:
    """Where man, bash, zsh and fish of Debian look for them."""
    lay_help(tmp_path, Source(ROOT, "1.2.0", "0123456789abcdef", 0))
    share = tmp_path / "usr/share"
    assert (share / "man/man1/soakwatch-run.1").read_text(encoding="utf-8").startswith('.TH "SOAKWATCH-RUN" 1')
    assert "complete" in (share / "bash-completion/completions/soakwatch").read_text(encoding="utf-8")
    assert (share / "zsh/vendor-completions/_soakwatch").read_text(encoding="utf-8").startswith("#compdef soakwatch")
    assert "complete" in (share / "fish/vendor_completions.d/soakwatch.fish").read_text(encoding="utf-8")


def test_a_draft_sorts_before_the_release_and_names_its_commit(project: Path, tmp_path: Path) -> None:
    """In every distribution of it."""
    source = export(project, None, tmp_path / "tree")
    assert source.version == f"1.2.0.dev0+g{source.commit[:9]}"
    for folder in source.projects:
        assert f'version = "{source.version}"' in (folder / "pyproject.toml").read_text()


def test_a_wrong_target_and_a_missing_argument_are_refused_in_words() -> None:
    """With what to write instead."""
    with pytest.raises(ReleaseError, match=r"'3\.13-arm' is no target: write a Python and a machine, as 3\.13-x86_64"):
        target_of("3.13-arm")
    assert target_of("3.14-aarch64") == Target("3.14", "aarch64")
    done = run("deploy/release")
    assert (done.returncode, done.stderr) == (
        4,
        "name a tag, or --draft for the commit that is checked out (deploy/release --help says more)\n",
    )
    assert "--draft" in run("deploy/release", "--help").stdout


def test_files_of_a_release_are_the_same_bytes_and_replace_those_of_the_last(tmp_path: Path) -> None:
    """An archive has no owner and no time of its making; what is not a release's stays."""
    wheels, out = tmp_path / "wheels", tmp_path / "out"
    wheels.mkdir()
    out.mkdir()
    (wheels / "b.whl").write_bytes(b"b")
    (wheels / "a.whl").write_bytes(b"a")
    digests = set()
    for mode in (0o600, 0o664):
        (wheels / "a.whl").chmod(mode)
        pack(wheels, out / "house.tar.gz", 1_700_000_000)
        digests.add(hashlib.sha256((out / "house.tar.gz").read_bytes()).hexdigest())
    assert len(digests) == 1
    with tarfile.open(out / "house.tar.gz") as archive:
        assert archive.getnames() == ["house/a.whl", "house/b.whl"]
    write_sums(out)
    assert (out / SUMS).read_text() == f"{digests.pop()}  house.tar.gz\n"
    (out / "notes").write_text("mine")
    remove_release(out)
    assert [file.name for file in out.iterdir()] == ["notes"]


def test_a_wheelhouse_holds_numpy_without_its_tests(tmp_path: Path) -> None:
    """By a name that says so; what is left is listed with its digests and installs; made again it is the same bytes."""
    about = "numpy-1.0.dist-info"
    files = {
        "numpy/__init__.py": b"x = 1\n",
        "numpy/lib/tests/test_x.py": b"import nothing\n",
        "numpy/tests.py": b"y = 2\n",
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    files[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\n"]).encode()
    made = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        for name in ("numpy", "other"):
            with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
                for path, content in files.items():
                    archive.writestr(zipfile.ZipInfo(path, (2026, 1, 2, 3, 4, 6)), content)
        leave_out_tests(folder)
        assert {file.name for file in folder.iterdir()} == {
            "numpy-1.0-1notests-py3-none-any.whl",
            "other-1.0-py3-none-any.whl",
        }
        made.add((folder / "numpy-1.0-1notests-py3-none-any.whl").read_bytes())
    assert len(made) == 1
    with zipfile.ZipFile(io.BytesIO(made.pop())) as archive:
        assert set(archive.namelist()) == {*files} - {"numpy/lib/tests/test_x.py"}
        assert archive.read(f"{about}/WHEEL").endswith(b"Tag: py3-none-any\nBuild: 1notests\n")
        listed = [line.split(",") for line in archive.read(f"{about}/RECORD").decode().splitlines()]
        assert {name for name, *_ in listed} == set(archive.namelist())
        for name, sum_, size in listed[:-1]:
            content = archive.read(name)
            assert (sum_, size) == (f"sha256={digest(content)}", str(len(content)))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--find-links", tmp_path / "a"]
    done = run(*pip, "--target", tmp_path / "there", "numpy==1.0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there/numpy/tests.py").exists()


def digest(content: bytes) -> str:
    """As the RECORD of a wheel has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def test_the_maintainer_script_is_a_shell_script_that_keeps_records(tmp_path: Path) -> None:
    """Purge removes neither records nor plans, and says so: no rm of them stands in it but in what it says."""
    script = ROOT / "deploy/debian/maintainer"
    assert run("sh", "-n", script).returncode == 0
    purge = tmp_path / "soakwatch.postrm"
    text = script.read_text().replace("/var/lib/soakwatch", f"{tmp_path}/records").replace("/etc/", f"{tmp_path}/etc/")
    purge.write_text(text)
    for folder in ("records", "etc/soakwatch"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "kept").write_text("")
    done = run("sh", purge, "purge")
    assert done.returncode == 0, done.stderr
    assert f"soakwatch: the records in {tmp_path}/records are kept" in done.stdout
    assert f"soakwatch: the plans and settings in {tmp_path}/etc/soakwatch are kept" in done.stdout
    assert (tmp_path / "records/kept").exists()
    assert (tmp_path / "etc/soakwatch/kept").exists()


def test_the_first_screen_installs_as_the_page_does() -> None:
    """The commands of the README stand in docs/install.md, which ``--prove`` types in bare systems."""
    page = (ROOT / "docs/install.md").read_text().splitlines()
    block = (ROOT / "README.md").read_text().partition("## Install\n")[2].partition("```sh\n")[2].partition("```")[0]
    commands = [line.partition("  #")[0] for line in block.splitlines()]
    assert len(commands) == 2
    assert set(commands) <= {line.partition("  #")[0] for line in page}


@pytest.mark.slow
@pytest.mark.timeout(2 * _MAKING_S)
def test_a_draft_is_whole_and_installs_in_bare_systems_without_a_network(tmp_path: Path) -> None:
    """Made, checked by its sums, and installed in each way in each Debian (skipped where none can be made)."""
    needs("git", "dpkg-deb", "debootstrap", "ip")
    out = tmp_path / "dist"
    made = run("deploy/release", "--draft", "--out", out, timeout=_MAKING_S)
    assert made.returncode == 0, made.stderr
    checked = subprocess.run(["sha256sum", "-c", "--quiet", SUMS], cwd=out, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    (sbom,) = out.glob("soakwatch-*.cdx.json")
    # Names as indexes compare them (PEP 503): packages write their own with - or _.
    names = {component["name"].replace("_", "-") for component in json.loads(sbom.read_text())["components"]}
    assert {"numpy", "scipy", "pysnmp", "gufo-snmp", "apprise", "influxdb-client", "soakwatch-trex"} <= names
    if why := prove.lacking():
        pytest.skip(why)
    proved = run("deploy/release", "--prove", "--out", out, timeout=_MAKING_S)
    assert proved.returncode == 0, proved.stdout + proved.stderr
    assert proved.stdout.count("all ways work") == len(prove.SUITES)


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    "where", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "windows", "aarch64-apple-darwin"]
)
def test_every_dependency_has_a_wheel(python: str, where: str, tmp_path: Path) -> None:
    """For each Python and machine of docs/install.md, with all extras and plug-ins."""
    wanted, pins = tmp_path / "wanted.in", tmp_path / "pins.txt"
    wanted.write_text("\n".join(_dependencies()))
    uv = [ROOT / ".venv/bin/uv", "pip", "compile", "-q", "--only-binary", ":all:", "--no-header", "--no-annotate"]
    done = run(*uv, "--python-version", python, "--python-platform", where, wanted, "-o", pins)
    assert done.returncode == 0, done.stderr
    assert ("gufo-snmp" in pins.read_text()) == ("linux" in where)


def _dependencies() -> list[str]:
    """What Soakwatch, its extras and its plug-ins ask for, but for one another."""
    found: list[str] = []
    for file in (ROOT / "pyproject.toml", *ROOT.glob("collector/plugins/*/pyproject.toml")):
        project = tomllib.loads(file.read_text())["project"]
        found += project["dependencies"]
        found += [one for extra in project.get("optional-dependencies", {}).values() for one in extra]
    return sorted({one for one in found if not one.startswith("soakwatch")})
