"""A real Prometheus: the installed one, else that of Debian's package, kept in the user's cache directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.waiting import until
from tools.engines.server import free_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "interpulse" / "prometheus"
PROGRAMS = ("prometheus", "promtool")


class PrometheusMissing(Exception):
    """There is no Prometheus, and none can be had."""


class Prometheus:
    """Answers queries."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        answer = self._get(f"/api/v1/query?{urlencode({'query': expression})}")
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The rules that it has loaded, with their state."""
        return [rule for group in self._get("/api/v1/rules")["data"]["groups"] for rule in group["rules"]]

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def check_rules(path: Path) -> None:
    """Raise if the file of rules is none."""
    done = subprocess.run([_program("promtool"), "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running_prometheus(configuration: Path, directory: Path) -> Iterator[Prometheus]:
    """One that scrapes as the file says, until the end of the block. Its data goes into the directory."""
    address = f"127.0.0.1:{free_port()}"
    command = [
        _program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    log = directory / "prometheus.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=directory) as process:
        try:
            until(lambda: _answers(f"http://{address}/-/ready", process, log))
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()


def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(CACHE / "usr" / "bin"))
    if found is None:
        _get_package()
        found = shutil.which(name, path=str(CACHE / "usr" / "bin"))
    assert found is not None, f"the package has no {name}"
    return found


def _get_package() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise PrometheusMissing(f"{' and '.join(PROGRAMS)} were not found: install Prometheus, and put them into PATH")
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
        download = ["apt-get", "download", "-qq", "prometheus"]
        if subprocess.run(download, cwd=scratch, check=False, timeout=300).returncode:  # no list of packages yet
            subprocess.run(["apt-get", "update", "-qq"], check=True, timeout=300)
            subprocess.run(download, cwd=scratch, check=True, timeout=300)
        (package,) = Path(scratch).glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, Path(scratch, "unpacked")], check=True)
        shutil.rmtree(CACHE, ignore_errors=True)
        Path(scratch, "unpacked").rename(CACHE)
