"""Builds the site of the documentation: lays the pages out, makes the navigation of docs/README.md, runs Zensical, and
checks every link, anchor and resource of what it made. ``deploy/docs`` calls it.

docs/ is the top of the site; other Markdown files of the repository stand below ``repository/``. A link of a page to a
file that is no page is shown as the path of that file.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from site_check import problems_of

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
INDEX = "docs/README.md"
_FOLDERS = ("agent", "changes", "collector", "dashboards", "deploy", "docs", "rules", "tests")
_LEFT_OUT = re.compile(r"^changes/[+\d]|^tests/collector/|^rules/soakwatch_rules/|/runs/|/\.")
_LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^( *)(```|~~~)")
_ITEM = re.compile(r"^( *)([*-]|\d+\.) ")
_SECTION = re.compile(r"^(?P<level>###?) (?P<title>.+)$|^\| (?P<row>\[[^|]+) \|", re.MULTILINE)
_LINKED = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
Nav = list[tuple[str, "str | Nav"]]


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="deploy/docs", description="Build the documentation as a site, offline.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="folder of the site [build/docs]")
    out: Path = parser.parse_args().out.resolve()
    began = time.monotonic()
    work = out.with_name(f"{out.name}.work")
    shutil.rmtree(work, ignore_errors=True)
    lay_out(ROOT, work)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(work / "zensical.toml")]
    built = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if built.returncode:
        print(built.stdout + built.stderr, file=sys.stderr)
        return 1
    shutil.rmtree(out, ignore_errors=True)
    (work / "site").rename(out)
    shutil.rmtree(work)
    wrong = problems_of(out)
    for line in wrong:
        print(line, file=sys.stderr)
    files = [file for file in out.rglob("*") if file.is_file()]
    pages = sum(file.suffix == ".html" for file in files)
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{out}/index.html: {pages} pages, {size:.1f} MB, built in {time.monotonic() - began:.1f} s", end="")
    print(f", {len(wrong)} problems" if wrong else ", every link leads somewhere, nothing is fetched from elsewhere")
    return 1 if wrong else 0


def lay_out(root: Path, work: Path) -> None:
    """Writes the pages, their pictures and the configuration of the site into a folder."""
    pages = site_pages(root)
    for source, place in pages.items():
        file = work / "pages" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page_of(root, source, pages), encoding="utf-8")
    for picture in sorted((root / "docs").glob("*.png")):
        shutil.copy(picture, work / "pages" / picture.name)
    for name in ("site.css", "iframe-worker.js"):
        shutil.copy(HERE / name, work / "pages" / name)
    config = (HERE / "zensical.toml").read_text(encoding="utf-8")
    nav = navigation((root / INDEX).read_text(encoding="utf-8"), pages)
    (work / "zensical.toml").write_text(config.replace("[project]\n", f"[project]\nnav = {_toml(nav)}\n", 1), "utf-8")


def site_pages(root: Path) -> dict[str, str]:
    """The places on the site by the files of the repository."""
    files = [*root.glob("*.md"), *(file for folder in _FOLDERS for file in (root / folder).rglob("*.md"))]
    names = sorted(str(file.relative_to(root)) for file in files)
    return {name: _place(name) for name in names if not _LEFT_OUT.search(name)}


def _place(name: str) -> str:
    if name == INDEX:
        return "index.md"
    folder, _, file = name.rpartition("/")
    return file if folder == "docs" else f"repository/{name}"


def page_of(root: Path, source: str, pages: Mapping[str, str]) -> str:
    """A page as the site has it: links to where things are there, no marks of what is generated, and blank lines where
    Python's Markdown needs them and GitHub's does not."""
    text = re.sub(r"^<!-- /?output.* -->$", "", (root / source).read_text(encoding="utf-8"), flags=re.MULTILINE)
    told = [
        chunk if fenced else _LINK.sub(lambda link: _link(root, source, pages, link), chunk)
        for fenced, chunk in _chunks(text)
    ]
    return "\n".join(told) + "\n"


def _chunks(text: str) -> Iterator[tuple[bool, str]]:
    """The text in turns outside and inside of fences; outside, a list has a blank line before it."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            yield False, "\n".join(lines)
            lines, fence = [line], mark[2]
        elif mark and line.strip() == fence:
            yield True, "\n".join([*lines, line])
            lines, fence = [], ""
        else:
            before = lines[-1] if lines else ""
            if not fence and _ITEM.match(line) and before.strip() and not _ITEM.match(before) and before[0] != " ":
                lines.append("")
            lines.append(line)
    yield bool(fence), "\n".join(lines)


def _link(root: Path, source: str, pages: Mapping[str, str], link: re.Match[str]) -> str:
    path, anchor = link["path"], link["anchor"] or ""
    if not path or ":" in path:
        return link[0]
    target = (root / source).parent.joinpath(path).resolve()
    if not target.is_relative_to(root) or not target.exists():
        return link[0]
    name = str(target.relative_to(root))
    place = pages.get(name) or pages.get(f"{name}/README.md")
    if place is None and name.startswith("docs/"):
        place = name.removeprefix("docs/")
    if place is None:
        return f"{link['text'].strip('[]')} (`{name}`)"
    depth = pages[source].count("/")
    return f"{link['text']}({'../' * depth}{place}{anchor})"


def navigation(index: str, pages: Mapping[str, str]) -> Nav:
    """The sections of the index with their pages: what is in its tables is in the navigation, in its order."""
    nav: Nav = [("Documentation", "index.md")]
    group = nav
    for found in _SECTION.finditer(index):
        if found["title"]:
            inner: Nav = []
            section = nav if len(found["level"]) == 2 else nav[-1][1]
            assert isinstance(section, list)
            section.append((found["title"], inner))
            group = inner
        for title, link in _LINKED.findall(found["row"] or ""):
            target = (ROOT / INDEX).parent.joinpath(link.partition("#")[0]).resolve()
            group.append((title.replace("`", ""), pages[str(target.relative_to(ROOT))]))
    return nav


def _toml(nav: Nav) -> str:
    def one(title: str, place: object) -> str:
        inner = f"[{', '.join(one(*each) for each in place)}]" if isinstance(place, list) else json.dumps(place)
        return f"{{ {json.dumps(title)} = {inner} }}"

    return f"[{', '.join(one(*each) for each in nav)}]"


if __name__ == "__main__":
    sys.exit(main())
