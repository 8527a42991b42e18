"""``verify``, ``seal`` and ``bundle`` as commands, with real SSH keys."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from tests.collector.cli.time_stamp_authority import make_authority, stamping
from tests.commands import Command, command_in
from tests.reliability.changed_records import sealed_run

from soakwatch.report.json import verdict_schema
from soakwatch_testing.records import small_record


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sealed run."""
    return sealed_run(tmp_path_factory.mktemp("sealed") / "run", seed=1)


@pytest.fixture
def here(sealed: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the run, keys of Alice and Eve, and a file that allows Alice to sign."""
    shutil.copytree(sealed, tmp_path / "run")
    for name in ("alice", "eve"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    allowed = f'alice@lab namespaces="soakwatch@record" {(tmp_path / "alice.pub").read_text()}'
    (tmp_path / "allowed").write_text(allowed)
    return tmp_path


@pytest.fixture
def soakwatch(here: Path) -> Command:
    """Runs commands there."""
    return command_in(here)


def digest_in(output: str) -> str:
    """The digest that a command printed."""
    return next(word for word in output.split() if len(word) == 64)


def test_a_seal_is_verified_by_digest_and_by_signer(here: Path, soakwatch: Command) -> None:
    """Unsigned it says so; signed it says by whom; another key, digest or text is told."""
    done = soakwatch("verify", "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("whole and as sealed: run\n")
    assert "not signed: whoever can write the file can seal it again" in done.stdout
    digest = digest_in(done.stdout)
    assert soakwatch("verify", "run", "--digest", digest).returncode == 0
    other = soakwatch("verify", "run", "--digest", "0" * 64)
    assert (other.returncode, other.stdout.splitlines()[0]) == (1, "not the digest of this record: run")
    unsigned = soakwatch("verify", "run", "--allowed-signers", "allowed")
    assert (unsigned.returncode, unsigned.stdout.splitlines()[0]) == (3, "sealed but not signed: run")

    assert digest in soakwatch("seal", "run", "--sign-with", "alice").stdout
    signed = soakwatch("verify", "run", "--allowed-signers", "allowed", "--json")
    document = json.loads(signed.stdout)
    assert (signed.returncode, document["state"], document["signed_by"], document["digest"]) == (
        0,
        "whole and as sealed",
        "alice@lab",
        digest,
    )
    (here / "eves").write_text(f"eve@elsewhere {(here / 'eve.pub').read_text()}")
    wrong = soakwatch("verify", "run", "--allowed-signers", "eves")
    assert wrong.returncode == 1
    assert "which is of nobody in eves" in wrong.stdout

    with closing(sqlite3.connect(here / "run" / "record.sqlite", isolation_level=None)) as sql:
        sql.execute("UPDATE seal SET signature=replace(signature, 'A', 'B')")
    assert soakwatch("verify", "run", "--allowed-signers", "allowed").returncode == 1


def test_a_change_is_told_by_every_command(here: Path, soakwatch: Command) -> None:
    """verify names table and row, judge and report give no verdict, and nobody seals it again."""
    before = soakwatch("judge", "run", "--json", "-")
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(json.loads(before.stdout))
    assert json.loads(before.stdout)["seal"]["digest"] == digest_in(soakwatch("verify", "run").stdout)
    with closing(sqlite3.connect(here / "run" / "record.sqlite", isolation_level=None)) as sql:
        sql.execute("UPDATE event SET kind='reboot' WHERE id=2")
    done = soakwatch("verify", "run")
    assert (done.returncode, done.stdout.splitlines()[:2]) == (
        1,
        ["changed since it was sealed: run", "  table event, row 2: changed"],
    )
    judged = soakwatch("judge", "run")
    assert judged.returncode == 3
    assert "the record was changed since it was sealed: table event, row 2: changed" in judged.stdout
    after = json.loads(soakwatch("judge", "run", "--json", "-").stdout)
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(after)
    assert (after["verdict"], after["seal"]["changed"]) == ("inconclusive", ["table event, row 2: changed"])
    for options, sign in (
        (("--md", "r.md"), "table event, row 2"),
        (("--junit", "r.xml"), 'name="seal" value="record'),
    ):
        soakwatch("report", "run", *options)
        assert sign in (here / options[1]).read_text()
    refused = soakwatch("seal", "run")
    assert (refused.returncode, "it is not sealed again" in refused.stderr) == (2, True)
    against = soakwatch("judge", "run", "--against", "run")
    assert (against.returncode, "nothing can be compared with it" in against.stderr) == (2, True)


def test_what_cannot_be_decided_is_exit_3(here: Path, soakwatch: Command) -> None:
    """A run that has not ended: its chain was checked up to now."""
    small_record(here / "other", 5).close()
    done = soakwatch("verify", "other")
    assert done.returncode == 3
    assert "not sealed: other broke off; its chain of" in done.stdout
    assert soakwatch("seal", "other").returncode == 2
    assert soakwatch("verify", "nothing").returncode == 2


def test_a_key_that_cannot_sign_is_refused_before_the_run(here: Path, soakwatch: Command) -> None:
    """A passphrase is never asked for, and nothing hangs."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", here / "locked"], check=True)
    for key, words in (("locked", "a key with a passphrase must be in an agent"), ("none", "there is no such file")):
        done = soakwatch(
            "run", "--target", "local", "--duration", "2s", "--into", "new", "--no-web", "--sign-with", key, timeout=60
        )
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert not (here / "new").exists()


def test_a_bundle_is_judged_elsewhere(here: Path, soakwatch: Command) -> None:
    """The same bytes each time, the same verdict, and the seal by ``sha256sum`` and ``ssh-keygen`` alone."""
    soakwatch("seal", "run", "--sign-with", "alice")
    (here / "run" / "report.md").write_text("a report")
    first = soakwatch("bundle", "run", "-o", "one.tar.gz")
    assert first.returncode == 0, first.stderr
    soakwatch("bundle", "run", "-o", "two.tar.gz")
    assert (here / "one.tar.gz").read_bytes() == (here / "two.tar.gz").read_bytes()
    shutil.move(here / "run", here / "away")
    done = soakwatch("verify", "one.tar.gz", "--allowed-signers", "allowed", "--digest", digest_in(first.stdout))
    assert (done.returncode, "signed by alice@lab" in done.stdout) == (0, True), done.stdout + done.stderr
    own, bundled = (soakwatch("judge", name, "--json", "-") for name in ("away", "one.tar.gz"))
    assert own.stdout == bundled.stdout
    subprocess.run(["tar", "-xzf", "one.tar.gz"], cwd=here, check=True)
    names = {path.name for path in (here / "run").iterdir()}
    assert names == {
        *("README.txt", "SHA256SUMS", "plan.yaml", "record.sqlite", "report.md", "seal.txt", "seal.txt.sig")
    }
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=here / "run", check=True)
    words = ["-Y", "verify", "-n", "soakwatch@record", "-I", "alice@lab", "-s", "seal.txt.sig", "-f", "../allowed"]
    statement = (here / "run" / "seal.txt").read_bytes()
    subprocess.run(["ssh-keygen", *words], cwd=here / "run", input=statement, check=True, capture_output=True)


@pytest.mark.parametrize("damage", ["outside", "link", "changed", "cut", "exchanged", "huge"])
def test_a_bundle_that_is_not_as_it_was_made_is_refused(here: Path, soakwatch: Command, damage: str) -> None:
    """One sentence and exit code 2; nothing is written outside of a folder of its own."""
    soakwatch("bundle", "run", "-o", "one.tar.gz")
    data = io.BytesIO(gzip.decompress((here / "one.tar.gz").read_bytes()))
    out = io.BytesIO()
    with tarfile.open(fileobj=data) as old, tarfile.open(fileobj=out, mode="w") as new:
        for member in old.getmembers():
            file = old.extractfile(member)
            assert file is not None
            body = file.read()
            if damage == "changed" and member.name == "run/plan.yaml":
                body = body.replace(b"dut", b"dud")
            if damage == "exchanged" and member.name == "run/seal.txt":
                body = body.replace(b"links: ", b"links: 1")
            if damage == "huge" and member.name == "run/plan.yaml":
                body = bytes(65 << 20)
            member.size = len(body)
            new.addfile(member, io.BytesIO(body))
        if damage in {"outside", "link"}:
            odd = tarfile.TarInfo("run/../../outside" if damage == "outside" else "run/link")
            if damage == "link":
                odd.type, odd.linkname = tarfile.SYMTYPE, "/etc/passwd"
            new.addfile(odd, io.BytesIO())
    packed = gzip.compress(out.getvalue())
    (here / "bad.tar.gz").write_bytes(packed[: len(packed) // 2] if damage == "cut" else packed)
    done = soakwatch("verify", "bad.tar.gz")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stdout + done.stderr
    assert "cannot be used as a bundle" in done.stderr
    assert not (here.parent / "outside").exists()


def test_the_time_of_a_seal_is_stamped_by_an_authority(here: Path, soakwatch: Command) -> None:
    """A real authority by openssl: its stamp is checked by its root certificate, and by no other's."""
    root, other = make_authority(here / "tsa"), make_authority(here / "other")
    assert soakwatch("verify", "run", "--tsa-ca", root).returncode == 3
    nobody = soakwatch("seal", "run", "--timestamp", "http://127.0.0.1:9/")
    assert (nobody.returncode, "the time-stamp authority 127.0.0.1" in nobody.stderr) == (2, True)
    with stamping(here / "tsa") as url:
        assert soakwatch("seal", "run", "--timestamp", url).returncode == 0
    done = soakwatch("verify", "run", "--tsa-ca", root)
    assert (done.returncode, "  time stamp " in done.stdout) == (0, True), done.stdout + done.stderr
    wrong = soakwatch("verify", "run", "--tsa-ca", other)
    assert (wrong.returncode, wrong.stdout.splitlines()[0]) == (1, "sealed, but not stamped by that authority: run")
    soakwatch("bundle", "run", "-o", "one.tar.gz")
    assert soakwatch("verify", "one.tar.gz", "--tsa-ca", root).returncode == 0
