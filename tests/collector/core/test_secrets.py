"""Secrets are resolved late and shown never."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import Secret, secret


def test_a_secret_of_the_environment_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reference is resolved to the variable's or file's text, less the file's last line end."""
    monkeypatch.setenv("SOAK_TEST_SECRET", "hunter2")
    file = tmp_path / "token"
    file.write_bytes(b" to ken \r\n")
    assert secret("env:SOAK_TEST_SECRET").reveal() == "hunter2"
    assert secret(f"file:{file}").reveal() == " to ken "


def test_a_secret_shows_nothing_of_itself() -> None:
    """No way of printing or pickling a secret shows more than its reference."""
    kept = Secret("env:TOKEN", "hunter2")
    assert [repr(kept), str(kept), f"{kept}", f"{kept!r}", "%s" % kept] == ["Secret(env:TOKEN)"] * 5  # noqa: UP031
    with pytest.raises(TypeError, match="never written out"):
        pickle.dumps(kept)


def test_a_secret_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing or empty variable or file names the reference and the remedy."""
    monkeypatch.delenv("SOAK_TEST_SECRET", raising=False)
    monkeypatch.setenv("SOAK_TEST_EMPTY", "")
    empty = tmp_path / "empty"
    empty.write_text("\n")
    expected = {
        "env:SOAK_TEST_SECRET": "the environment variable SOAK_TEST_SECRET is not set: export it before the run",
        "env:SOAK_TEST_EMPTY": "the environment variable SOAK_TEST_EMPTY is empty: export the secret before the run",
        f"file:{empty}": f"the secret file {empty} is empty: write the secret into its first line",
        f"file:{tmp_path}/no": f"the secret file {tmp_path}/no cannot be read: No such file or directory",
    }
    for ref, sentence in expected.items():
        with pytest.raises(PlanError) as caught:
            secret(ref)
        assert str(caught.value) == sentence


def test_a_literal_is_not_a_reference() -> None:
    """What is no reference is refused without being repeated."""
    with pytest.raises(ValueError, match="env:NAME") as caught:
        secret("hunter2")
    assert "hunter2" not in str(caught.value)
