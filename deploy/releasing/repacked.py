"""Wheels of others without their own tests: a fifth of what numpy and scipy take when installed, half of pandas.

No code imports them. Their build systems know them as a part that an installation may lack (Meson's install tag
``tests``), but offer no such wheel. Ours says what it is by its build tag: ``scipy-1.17.1-1notests-cp311-….whl``.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path, PurePosixPath

HEAVY = ("numpy", "scipy", "pandas")
"""Packages whose tests weigh more than ten megabytes."""
_MARK = "notests"


def leave_out_tests(folder: Path) -> None:
    """Repacks the wheels of ``HEAVY`` in a folder."""
    for name in HEAVY:
        for wheel in folder.glob(f"{name}-*.whl"):
            repack(wheel)


def repack(wheel: Path) -> Path:
    """Replaces a wheel by one without folders called ``tests``; the same bytes for the same wheel. Returns its path."""
    name, version, *build, python, abi, platform = wheel.stem.split("-")
    tag = f"{build[0] if build else 1}{_MARK}"
    out = wheel.with_name(f"{'-'.join((name, version, tag, python, abi, platform))}.whl")
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(out, "w") as archive:
        kept = [info for info in whole.infolist() if "tests" not in PurePosixPath(info.filename).parts[:-1]]
        described = _with_build(whole.read(f"{about}/WHEEL"), tag)
        names = {info.filename for info in kept}
        record = _record(whole.read(f"{about}/RECORD"), names, f"{about}/WHEEL", described)
        new = {f"{about}/WHEEL": described, f"{about}/RECORD": record}
        for info in kept:
            plain = zipfile.ZipInfo(info.filename, info.date_time)
            plain.compress_type, plain.external_attr = zipfile.ZIP_DEFLATED, info.external_attr
            archive.writestr(plain, new.get(info.filename) or whole.read(info))
    wheel.unlink()
    return out


def _with_build(text: bytes, tag: str) -> bytes:
    lines = [line for line in text.splitlines() if line and not line.startswith(b"Build:")]
    return b"".join(line + b"\n" for line in (*lines, f"Build: {tag}".encode()))


def _record(text: bytes, names: set[str], changed: str, content: bytes) -> bytes:
    """The list of the files that are left, with the digest of the one that changed."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    for row in csv.reader(io.StringIO(text.decode())):
        if row[0] == changed:
            write((changed, f"sha256={digest}", len(content)))
        elif row[0] in names:
            write(row)
    return out.getvalue().encode()
