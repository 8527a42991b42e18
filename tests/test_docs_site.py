"""The documentation as a site: a command builds it, every link leads somewhere, it is read and searched from disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.needs import needs_chromium

ROOT = Path(__file__).parent.parent
BUILD = [sys.executable, str(ROOT / "deploy" / "site" / "docs_site.py")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built site."""
    out = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run([*BUILD, "--out", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every link leads somewhere, nothing is fetched from elsewhere" in done.stdout
    return out


def test_every_page_of_the_documentation_is_in_the_navigation(site: Path) -> None:
    """Each page of docs/ is a page of the site, and the first page leads to it."""
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        name = "index.html" if page.stem == "README" else f"{page.stem}.html"
        assert (site / name).is_file(), name
        assert f'href="{name}"' in index or name == "index.html", f"{name} is not in the navigation"


def test_a_link_that_breaks_is_told(site: Path, tmp_path: Path) -> None:
    """What is checked behind each build finds a page, an anchor and a picture that are gone, and a script from afar."""
    from site_check import problems_of

    (tmp_path / "index.html").write_text(
        '<h1 id="here">x</h1><a href="gone.html">1</a><a href="#there">2</a><a href="#here">3</a><img src="gone.png">'
        '<script src="https://cdn.example/x.js"></script><a href="https://example.org">4</a>'
    )
    assert [line.partition(": ")[2] for line in problems_of(tmp_path)] == [
        "there is no gone.png",
        "https://cdn.example/x.js is fetched from elsewhere",
        "the link gone.html leads nowhere",
        "the link #there names an anchor that is not there",
    ]


@pytest.mark.slow
def test_it_is_read_and_searched_from_disk(site: Path) -> None:
    """Without a server and without a network: nothing is asked for but files, and the search finds a plan's key."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs_chromium(), chromium_sandbox=False)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "plan-keys.html"):
            page.goto(f"file://{site}/{name}")
        page.locator("button.md-search__button").click()
        page.keyboard.type("max_repetitions")
        page.locator("a[href$='/plan-keys.html?h=max_repetitions#source-snmp']").wait_for(timeout=120_000)
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page is wider than a telephone"
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
