"""``deploy/release``: makes the files of a release, tests its sdist, proves its ways of installation."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from releasing import debian, prove, wheels
from releasing.source import ReleaseError, export
from releasing.wheels import Target, target_of, this_machine

ROOT = Path(__file__).resolve().parents[2]
_DEFAULT_TARGETS = ("3.11-x86_64", "3.13-x86_64")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a sentence on standard error."""
    parser = argparse.ArgumentParser(prog="deploy/release", usage="deploy/release --help", add_help=False)
    parser.add_argument("tag", nargs="?")
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--target", action="append", type=str)
    parser.add_argument("--constraints", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--suite", action="append", choices=sorted(prove.SUITES))
    parser.add_argument("--way", action="append", choices=prove.WAYS)
    parser.add_argument("--earlier", type=Path)
    parser.add_argument("--bases", type=Path, default=prove.default_bases())
    chosen = parser.parse_args(arguments)
    out: Path = chosen.out.resolve()
    if chosen.tag and chosen.draft:
        parser.error("name a tag, or --draft, not both")
    try:
        if chosen.tag or chosen.draft:
            targets = [target_of(text) for text in chosen.target or _DEFAULT_TARGETS]
            make(chosen.tag, targets, chosen.constraints, out)
        if chosen.test:
            prove.test_sdist(out)
        if chosen.prove:
            for suite in chosen.suite or sorted(prove.SUITES):
                prove.prove(suite, out, chosen.bases, chosen.way or prove.WAYS, chosen.earlier)
    except ReleaseError as error:
        _say(f"deploy/release: {error}")
        return 1
    return 0


def make(tag: str | None, targets: Sequence[Target], constraints: Path | None, out: Path) -> None:
    """Makes all files anew in ``out``; the files of the release that lies there go when all are made.

    Raises ReleaseError.
    """
    with tempfile.TemporaryDirectory(prefix="soakwatch-release-") as name:
        work, made = Path(name), Path(name) / "made"
        made.mkdir()
        source = export(ROOT, tag, work / "tree")
        _say(f"soakwatch {source.version}, commit {source.commit[:12]}{' (a draft)' if tag is None else ''}")
        wheels.build_distributions(source, made)
        _say(f"built {len(list(made.iterdir()))} wheels and sdists of {len(source.projects)} distributions")
        wheels.write_constraints(made, constraints)
        here = this_machine()
        for target in targets if here in targets else [*targets, here]:
            folder = work / "wheelhouses" / target.tag
            wheels.fill_wheelhouse(target, made, folder)
            if target == here:
                wheels.write_sbom(source, folder, work, made / f"soakwatch-{source.version}.cdx.json")
            if target not in targets:  # only for the SBOM
                continue
            _say(f"wheelhouse for {target.tag}: {len(list(folder.glob('*.whl')))} wheels")
            wheels.pack(folder, made / f"soakwatch-{source.version}-wheelhouse-{target.tag}.tar.gz", source.epoch)
            if not debian.debian_name(source, target):
                _say(f"no Debian has Python {target.python}: no package for {target.tag}")
            elif not shutil.which("dpkg-deb"):
                _say(f"dpkg-deb is not installed: no Debian package for {target.tag}")
            else:
                _say(f"Debian package {debian.build_debian(source, target, folder, work, made).name}")
        wheels.write_sums(made)
        wheels.remove_release(out)
        shutil.copytree(made, out, dirs_exist_ok=True)
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size / 1e6:9.2f} MB  {file.name}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
