"""The scripts of the plots are served to the live page as the report holds them."""

from __future__ import annotations

from importlib import resources

import httpx
import pytest

from soakwatch_testing.served import ServedRun


@pytest.mark.parametrize("name", ["theme.js", "figure.js", "plots.js"])
def test_the_live_page_gets_the_scripts_of_the_report(client: httpx.Client, served: ServedRun, name: str) -> None:
    """Byte for byte, as a script, and not again while it is known."""
    answer = client.get(f"{served.url}/static/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.content == resources.files("soakwatch.report").joinpath(name).read_bytes()
    again = client.get(f"{served.url}/static/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


def test_nothing_else_of_the_report_is_served(client: httpx.Client, served: ServedRun) -> None:
    """A template is no file of a page."""
    assert client.get(f"{served.url}/static/style.css.jinja").status_code == 404
    assert client.get(f"{served.url}/static/page.html.jinja").status_code == 404
