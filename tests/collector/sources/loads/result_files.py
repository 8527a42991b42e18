"""Files as generators write them, growing while a run reads them."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

WRK = (Path(__file__).parent / "data" / "wrk-4.1.txt").read_text()


def write_all(folder: Path, over: threading.Event) -> None:
    """What five generators write, every tenth of a second."""
    (folder / "soak_stats_history.csv").write_text(
        "Timestamp,User Count,Type,Name,50%,100%,Total Request Count,Total Failure Count\n"
    )
    (folder / "soak.jtl").write_text("timeStamp,elapsed,success\n")
    (folder / "ports.csv").write_bytes("Time;Port;Frames Tx.;Tx. Rate (Kbps)\r\n".encode("utf-8-sig"))
    (folder / "broken.csv").write_text("time,colour\nred,blue\n")
    number = 0
    while not over.wait(0.1):
        number += 1
        now = time.time()
        iso = datetime.fromtimestamp(now, UTC).isoformat()
        point = f'"type":"Point","data":{{"time":"{iso}","value":'
        tags = ',"tags":null}}\n'
        berlin = datetime.fromtimestamp(now, ZoneInfo("Europe/Berlin")).strftime("%d.%m.%Y %H:%M:%S.%f")
        added = {
            "k6.json": f'{{"metric":"http_reqs",{point}1{tags}{{"metric":"http_req_duration",{point}20{tags}',
            "soak.jtl": f"{round(now * 1000) - 20},20,{'false' if number % 10 == 0 else 'true'}\n",
            "ports.csv": f"{berlin};1;{number};0,5\r\n{berlin};2;{number};1,5\r\n",
        }
        if number % 10 == 0:
            added["soak_stats_history.csv"] = f"{int(now)},3,,Aggregated,10,20,{number},0\n"
            added["wrk.txt"] = WRK
        for name, text in added.items():
            with (folder / name).open("a", newline="") as out:
                out.write(text)
