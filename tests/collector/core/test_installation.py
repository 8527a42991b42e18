"""The command that adds a package is one for the installation that asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import soakwatch
from soakwatch.core.installation import to_add_package, to_add_plugin

FILE = "./soakwatch_trex-*.whl"
APPRISE = "'apprise<3,>=2.2'"


@pytest.mark.parametrize(
    ("marks", "begin"),
    [
        ("pipx_metadata.json", "pipx inject soakwatch "),
        ("uv-receipt.toml", "uv tool install ./soakwatch-*.whl --with "),
        ("pyvenv.cfg", "{prefix}/bin/pip install "),
    ],
)
def test_pipx_uv_and_pip_are_told_apart(
    marks: str, begin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what each leaves in the environment that it makes; a plug-in is a file, for no index has it."""
    (tmp_path / marks).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(soakwatch, "__file__", str(tmp_path / "lib/soakwatch/__init__.py"))
    begin = begin.format(prefix=tmp_path)
    assert to_add_package("apprise") == f"{begin}{APPRISE}"
    between = " --with " if "uv tool" in begin else " "
    assert to_add_package("apprise", "duckdb") == f"{begin}{APPRISE}{between}'duckdb<3,>=1.3'"
    assert to_add_plugin("trex") == f"{begin}{FILE} (a file of the release; docs/install.md)"


def test_pip_is_named_by_its_path_where_the_word_means_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a venv is on the path only while it is activated."""
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert to_add_package("pyarrow").startswith(f"{pip} install 'pyarrow")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert to_add_package("pyarrow").startswith("pip install 'pyarrow")


def test_a_checkout_has_its_plugins_beside_it() -> None:
    assert to_add_plugin("trex").endswith("pip install -e collector/plugins/trex in the checkout")


def test_the_debian_package_says_where_else_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be installed into its folder."""
    monkeypatch.setattr(sys, "prefix", "/usr/lib/soakwatch")
    assert to_add_package("pandas") == (
        "the Debian package lacks it, a wheelhouse of the release has it (docs/install.md)"
    )
