"""Makes the pictures of the documentation, of real runs: ``python tests/pictures.py [NAME ...]``, all without a name.

It runs the demo and the tutorial's commands (docs/first-service.md), which takes eight minutes, and looks at their
pages with Chromium. Names are those of the files in docs/, without .png.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOAKWATCH = Path(sys.executable).parent / "soakwatch"
WIDE, HIGH = 1440, 900


def picture(address: str, name: str) -> None:
    """The first screen of a page, as a file of docs/."""
    from playwright.sync_api import sync_playwright
    from tests.needs import needs_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs_chromium(), chromium_sandbox=False)
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
        page.goto(address)
        page.locator("canvas:visible, svg:visible").first.wait_for(timeout=120_000)
        page.wait_for_function("document.fonts.ready")
        page.screenshot(path=ROOT / "docs" / f"{name}.png")
        browser.close()
    print(f"wrote docs/{name}.png")


def demo(folder: Path) -> None:
    """The report of the demo, and its live page a minute and a half after its begin, when the leak is known."""
    with subprocess.Popen([SOAKWATCH, "demo"], cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        time.sleep(95)
        link = subprocess.run(
            [SOAKWATCH, "open", "last", "--print"], cwd=folder, capture_output=True, text=True, check=True
        )
        picture(link.stdout.split()[-1], "live")
        running.communicate()
    picture(next(folder.glob("runs/*-demo/report.html")).as_uri(), "report")


def service(folder: Path) -> None:
    """The report of the run that fails in the tutorial."""
    from tests.doc_blocks import run_steps, steps_of

    steps = steps_of((ROOT / "docs" / "first-service.md").read_text(encoding="utf-8"))
    path = f"{SOAKWATCH.parent}{os.pathsep}{os.environ['PATH']}"
    run_steps(steps, folder, {"PATH": path}, 1500)
    picture((folder / "shop-soak" / "shop.html").as_uri(), "first-service")


MAKERS: Mapping[str, Callable[[Path], None]] = {"report": demo, "live": demo, "first-service": service}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for maker in dict.fromkeys(MAKERS[name] for name in (sys.argv[1:] or MAKERS)):
        with tempfile.TemporaryDirectory() as made:
            maker(Path(made))
