"""A real nginx that logs people in, with the configuration of docs/lab-server.md, in front of a lab server."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.collector.web.test_lab_roles import OWN, opened
from tests.commands import wait_until

from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import JobState, User
from soakwatch.sources.pollers.agent.certificate import write_certificate
from soakwatch.web.trusted_proxy import trusted_proxy
from soakwatch_testing.ports import free_port

PAGE = Path(__file__).parents[3] / "docs" / "lab-server.md"
PROGRAM = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")


@pytest.fixture
def program() -> str:
    """Debian's nginx."""
    if PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("nginx is not installed: tests/run installs it")
        pytest.skip("nginx is not installed")
    return PROGRAM


def configured(folder: Path, port: int, server: str) -> Path:
    """The configuration of the page, with files and ports of this test."""
    block = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    papers = write_certificate(folder / "papers", "localhost")
    words = subprocess.run(["openssl", "passwd", "-apr1", "secret"], capture_output=True, text=True, check=True).stdout
    (folder / "lab.htpasswd").write_text("".join(f"{name}:{words}" for name in ("anna", "bert", "carla")))
    text = block[1]
    for old, new in (
        ("listen 8443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/nginx/lab.pem", str(papers.cert)),
        ("/etc/nginx/lab.key", str(papers.key)),
        ("/etc/nginx/lab.htpasswd", str(folder / "lab.htpasswd")),
        ("http://127.0.0.1:8720", server),
    ):
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""
    head = f"daemon off;\npid {folder / 'nginx.pid'};\nerror_log stderr;\nevents {{}}\n"
    file.write_text(f"{user}{head}http {{ access_log off;\n{temporary}{text}}}\n")
    return file


@pytest.fixture
def through(tmp_path: Path, program: str) -> Iterator[tuple[str, Lab]]:
    """The address of the proxy, and what is behind it."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    for door in opened(tmp_path, trusted_proxy(["127.0.0.1"], "X-Remote-User", "X-Remote-Role")):
        port = free_port()
        file = configured(folder, port, door.url)
        process = subprocess.Popen([program, "-p", folder, "-c", file], stderr=subprocess.DEVNULL)

        def listens(port: int = port) -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "nginx listening")
        yield f"https://localhost:{port}", door.lab
        process.terminate()
        process.wait()


def test_people_log_in_at_the_proxy_of_the_documentation(through: tuple[str, Lab]) -> None:
    """In the role that the proxy gives them, also by a page over HTTPS; no header of a client's own gets through."""
    url, lab = through
    forged = {"x-remote-user": "root", "x-remote-role": "admin"}
    statuses: dict[str, int] = {}
    for name in ("anna", "bert", "carla", "mallory"):
        with httpx.Client(base_url=url, auth=(name, "secret"), verify=False, trust_env=False, timeout=240) as client:
            page = {"origin": url, **forged}
            statuses[name] = client.post("/api/lab/jobs", json={"plan": "night.yaml"}, headers=page).status_code
            foreign = {"origin": "https://evil.example"}
            assert client.post("/api/lab/jobs", json={"plan": "night.yaml"}, headers=foreign).status_code in {401, 403}
            shown = client.get("/lab")
            assert (f"<bdi>{name}</bdi>" in shown.text) == (name != "mallory")
    assert statuses == {"anna": 201, "bert": 201, "carla": 403, "mallory": 401}
    assert [job.user for job in lab.store.jobs(JobState.QUEUED)] == [User("anna", "operator"), User("bert", "admin")]
    with httpx.Client(base_url=url, verify=False, trust_env=False, timeout=240) as client:
        assert client.get("/api/lab", headers=forged).status_code == 401
        assert client.get("/api/lab", headers={"authorization": f"Bearer {OWN}"}).status_code == 401, (
            "nginx wants its own"
        )


def test_a_badge_is_shown_to_everybody_and_nothing_else(through: tuple[str, Lab]) -> None:
    """The location of the documentation lets the newest run's badge through; as who, no client can say."""
    url, _ = through
    forged = {"x-remote-user": "root", "x-remote-role": "admin"}
    with httpx.Client(base_url=url, verify=False, trust_env=False, timeout=240, headers=forged) as client:
        shown = client.get("/api/badge.svg")
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/svg+xml")
        again = client.get("/api/badge.svg", headers={"if-none-match": shown.headers["etag"]})
        assert again.status_code == 304, "a cache asks, and gets no copy"
        for path in ("/api/runs/run/badge.svg", "/api/badge.svg/../runs", "/api/runs", "/"):
            assert client.get(path).status_code == 401
