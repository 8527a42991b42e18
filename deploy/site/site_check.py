"""What is wrong with a built site: links that lead nowhere, anchors that no page has, resources from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_RESOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_NO_RESOURCE = {"canonical", "alternate", "prev", "next", "edit"}


class _Page(HTMLParser):
    """The anchors, links and resources of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag names."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        key = _RESOURCES.get(tag)
        if key and given.get(key) and given.get("rel", "") not in _NO_RESOURCE:
            self.resources.append(given[key])


def problems_of(site: Path) -> list[str]:
    """A sentence for each problem, with its page."""
    pages = {file.resolve(): _read(file) for file in sorted(site.rglob("*.html"))}
    return [f"{file.relative_to(site.resolve())}: {text}" for file in pages for text in _problems(file, pages)]


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _problems(file: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    page = pages[file]
    for resource in page.resources:
        parts = urlsplit(resource)
        if parts.scheme not in {"", "data"} or parts.netloc:
            yield f"{resource} is fetched from elsewhere"
        elif not parts.scheme and file.name != "404.html" and not file.parent.joinpath(unquote(parts.path)).exists():
            yield f"there is no {resource}"
    for link in page.links if file.name != "404.html" else ():
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = file.parent.joinpath(unquote(parts.path)).resolve() if parts.path else file
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            yield f"the link {link} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"the link {link} names an anchor that is not there"
