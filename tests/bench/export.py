"""What an export takes: rows a second, bytes a row, and the most memory of the command, beside reading the record.

python tests/bench/record.py --keep DIR        # 72 h x 200 series x 1 s
python tests/bench/export.py --record DIR
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
FORMATS: dict[str, tuple[str, ...]] = {
    "Parquet": ("--format", "parquet"),
    "Parquet, wide": ("--format", "parquet", "--wide"),
    "CSV": ("--format", "csv"),
    "line protocol": ("--format", "line-protocol"),
}


def measured(record: Path, words: tuple[str, ...], folder: Path) -> tuple[float, float, int, int]:
    """Wall and CPU seconds, the most memory in bytes, and the bytes that were written."""
    begun = time.perf_counter()
    process = subprocess.Popen([SOAKWATCH, "export", record, *words, "--output", folder], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"soakwatch export {' '.join(words)} ended with {process.returncode}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, size


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, required=True, help="folder of a record")
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="only this one; may be repeated")
    options = parser.parse_args()
    from soakwatch.record import RecordView

    with RecordView.open(options.record) as view:
        counts, series = view.counts(), len(view.keys())
        hours = view.window().seconds / 3600
    print(f"{hours:.0f} h, {series} series, {counts.samples:,} readings, {counts.bytes / 1e6:.0f} MB of record\n")
    print("| | wall | CPU | readings a second of CPU | bytes a reading | most memory |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in options.format or FORMATS:
        folder = Path(tempfile.mkdtemp(prefix="soakwatch-bench-"))
        try:
            wall, cpu, memory, size = measured(options.record, FORMATS[name], folder)
        finally:
            shutil.rmtree(folder)
        rate, each = counts.samples / cpu, size / counts.samples
        print(f"| {name} | {wall:.0f} s | {cpu:.0f} s | {rate:,.0f} | {each:.1f} | {memory / 1e6:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
