"""A run as one file that others can verify and judge offline: the record with its seal, plan and scripts, reports, and
digests of all. The same run makes the same file, byte for byte."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from soakwatch.core.errors import RecordError
from soakwatch.core.ssh_signature import NAMESPACE
from soakwatch.core.units import show_bytes
from soakwatch.record import RECORD_NAME, SIDE_SUFFIXES, RecordView
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.report.files import REPORT_FILES
from soakwatch.runs.catalog import find_run
from soakwatch.transfer.export.plan_files import write_plan
from soakwatch.transfer.export.staging import ExportError, staging

SUFFIX = ".tar.gz"
README, SUMS, SEAL, SIGNATURE, STAMP = "README.txt", "SHA256SUMS", "seal.txt", "seal.txt.sig", "seal.txt.tsr"
_FIRST_LINE = "soakwatch bundle 1"
_MOST_MEMBERS = 20_000
_MOST_BYTES = 64 << 30
"""Maximum unpacked size: beyond any record, to refuse decompression bombs."""
_MOST_SMALL = 64 << 20  # bytes of any file except the record


@dataclass(frozen=True, slots=True)
class Bundled:
    """What was written; ``digest`` is the seal's, "" without a seal."""

    path: Path
    files: tuple[str, ...]
    digest: str


def write_bundle(run: Path, output: Path, *, force: bool = False) -> Bundled:
    """Writes the bundle of an ended run. Raises ExportError, RecordError."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-bundle-") as temporary:
        folder = Path(temporary)
        with RecordView.open(run) as view:
            path = view.path
            if lifecycle_of(view.metas(), path) in {"running", "waiting"}:
                raise ExportError(f"{run} goes on: it can be bundled once it has ended")
            seals = view.seals()
            name = path.parent.name if path.name == RECORD_NAME else path.stem
            has_plan = view.meta("plan") is not None
        if any(path.with_name(path.name + suffix).exists() for suffix in SIDE_SUFFIXES):
            raise ExportError(f"{run} has a write-ahead log beside its record: soakwatch resume it, or seal it, first")
        shutil.copyfile(path, folder / RECORD_NAME)
        if has_plan:
            write_plan(folder / RECORD_NAME, folder)
        for report in REPORT_FILES.values():
            if (path.parent / report).is_file() and path.name == RECORD_NAME:
                shutil.copyfile(path.parent / report, folder / report)
        seal = seals[-1] if seals else None
        if seal is not None:
            (folder / SEAL).write_text(seal.document, encoding="utf-8")
            if seal.signature:
                (folder / SIGNATURE).write_text(seal.signature, encoding="utf-8")
            if seal.stamp:
                (folder / STAMP).write_bytes(seal.stamp)
        digest = "" if seal is None else seal.digest
        (folder / README).write_text(_readme(name, digest, signed=seal is not None and bool(seal.signature)))
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        sums = "".join(f"{_sum(file)}  {file.relative_to(folder).as_posix()}\n" for file in files)
        (folder / SUMS).write_text(sums, encoding="utf-8")
        first = [folder / README, folder / SUMS]
        ordered = [*first, *(file for file in files if file not in first)]
        with staging(force=force) as staged, staged.file(output).open("wb") as raw:
            _pack(raw, folder, ordered, PurePosixPath(name or "run"))
    return Bundled(output, tuple(file.relative_to(folder).as_posix() for file in ordered), digest)


def is_bundle(path: Path) -> bool:
    """True if a file is a bundle; False if it cannot be read."""
    try:
        with tarfile.open(path, "r|gz") as archive:
            first = archive.next()
            if first is None or PurePosixPath(first.name).name != README or not first.isfile():
                return False
            data = archive.extractfile(first)
            return data is not None and data.read(len(_FIRST_LINE)) == _FIRST_LINE.encode()
    except (OSError, tarfile.TarError, EOFError, zlib.error):
        return False


@contextmanager
def opened_run(text: str, runs: Path) -> Iterator[Path]:
    """Yields the folder or record of a named run (``find_run``); a bundle is unpacked to a temporary folder for the
    length of the block. Raises RecordError."""
    path = Path(text)
    if not (path.is_file() and is_bundle(path)):
        yield find_run(text, runs)
        return
    with tempfile.TemporaryDirectory(prefix="soakwatch-bundle-") as folder:
        yield unpack(path, Path(folder))


def unpack(bundle: Path, folder: Path) -> Path:
    """Unpacks a bundle below a folder and checks its digests; returns the run's folder. Writes nothing outside.

    Raises RecordError if the bundle is damaged, incomplete, too large, or has unsafe names.
    """
    run = folder / "run"
    run.mkdir()
    sums: dict[str, str] = {}
    found: dict[str, str] = {}
    room = _MOST_BYTES
    try:
        with tarfile.open(bundle, "r|gz") as archive:
            for member in archive:
                name = _inside(bundle, member)
                room -= member.size
                # Refused before it is written: a bomb must not fill the disk.
                if len(found) >= _MOST_MEMBERS or room < 0 or (name != RECORD_NAME and member.size > _MOST_SMALL):
                    raise _refused(bundle, f"{name} has {show_bytes(member.size)}, which is more than a bundle holds")
                data = archive.extractfile(member)
                if data is None or name in found:
                    raise _refused(bundle, f"{name} is there twice, or is no file")
                target = run / name
                target.parent.mkdir(parents=True, exist_ok=True)
                digest = hashlib.sha256()
                with target.open("wb") as file:
                    while piece := data.read(1 << 20):
                        digest.update(piece)
                        file.write(piece)
                found[name] = digest.hexdigest()
                if name == SUMS:
                    sums = _sums_in(target.read_text(encoding="utf-8"))
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise _refused(bundle, f"it cannot be unpacked: {error}") from None
    except OSError as error:
        raise _refused(bundle, f"it cannot be unpacked: {error.strerror or error}") from None
    found.pop(SUMS, None)
    # Every file must be listed with its digest, and every listed one must be there.
    for name in sorted(found.keys() | sums.keys()):
        if found.get(name) != sums.get(name):
            what = "is missing" if name not in found else "is not listed" if name not in sums else "was changed"
            raise _refused(bundle, f"{name} {what}")
    if RECORD_NAME not in found:
        raise _refused(bundle, f"it has no {RECORD_NAME}")
    named = run.with_name(_name_in(run / README) or "run")
    if named != run:
        run.rename(named)
    _agrees(bundle, named)
    return named


def _agrees(bundle: Path, folder: Path) -> None:
    """Raises RecordError unless the seal beside the record is the one in it."""
    with RecordView.open(folder) as view:
        seals = view.seals()
    beside = (folder / SEAL).read_bytes() if (folder / SEAL).is_file() else b""
    if beside != (seals[-1].document.encode("utf-8", "surrogateescape") if seals else b""):
        raise _refused(bundle, f"{SEAL} is not the seal of its record")


def _inside(bundle: Path, member: tarfile.TarInfo) -> str:
    """A member's path within the bundle's folder. Raises RecordError if it is unsafe."""
    parts = PurePosixPath(member.name).parts
    if not member.isfile() or len(parts) < 2 or ".." in parts or member.name.startswith("/") or "\\" in member.name:
        raise _refused(bundle, f"{member.name!r} is not a file within it")
    return PurePosixPath(*parts[1:]).as_posix()


def _pack(raw: io.BufferedIOBase, folder: Path, files: list[Path], root: PurePosixPath) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in files:
            info = tarfile.TarInfo((root / file.relative_to(folder).as_posix()).as_posix())
            info.size, info.mode = file.stat().st_size, 0o644
            with file.open("rb") as data:
                archive.addfile(info, data)


def _sum(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _sums_in(text: str) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _name_in(readme: Path) -> str:
    """The run's name from a README, if it is a plain name; else ""."""
    lines = readme.read_text(encoding="utf-8", errors="replace").splitlines() if readme.is_file() else []
    name = lines[1].removeprefix("run: ") if len(lines) > 1 and lines[1].startswith("run: ") else ""
    plain = name and all(c.isalnum() or c in "._+=@-" for c in name) and not name.startswith(".")
    return name if plain and len(name) <= 200 else ""


def _refused(bundle: Path, why: str) -> RecordError:
    return RecordError(f"{bundle} cannot be used as a bundle: {why}; have it made again (soakwatch bundle)")


def _readme(name: str, digest: str, *, signed: bool) -> str:
    sealed = (
        f"The digest of its seal: {digest}\n" if digest else "The record has no seal: nothing proves it unchanged.\n"
    )
    by_hand = (
        "By hand: `sha256sum -c SHA256SUMS`; `sha256sum seal.txt` gives the digest of the seal; its signature:\n"
        f"  ssh-keygen -Y verify -f allowed_signers -I NAME -n {NAMESPACE} -s seal.txt.sig < seal.txt\n"
        if signed
        else "By hand: `sha256sum -c SHA256SUMS`; `sha256sum seal.txt` gives the digest of the seal.\n"
    )
    return (
        f"{_FIRST_LINE}\nrun: {name}\n\n{sealed}"
        "Verify it: soakwatch verify THIS-FILE.tar.gz. Judge it again: soakwatch judge THIS-FILE.tar.gz\n"
        f"{by_hand}"
        "The seal covers the record (record.sqlite); plan.yaml, the scripts and the reports are made from it.\n"
    )
