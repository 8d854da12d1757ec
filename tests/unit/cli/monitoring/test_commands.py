"""``dashboards`` and ``alerts``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from interpulse.cli.main import main
from interpulse.cli.monitoring.dashboards import DASHBOARDS


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize("name", list(DASHBOARDS))
def test_dashboard_is_printed_as_grafana_imports_it(name: str) -> None:
    printed = json.loads(run("dashboards", "print", name).stdout)
    assert (printed["uid"], printed["title"]) == (f"interpulse-{name}", DASHBOARDS[name].title)


def test_scrape_configuration_names_its_targets() -> None:
    printed = yaml.safe_load(run("dashboards", "print", "scraping", "-t", "a:1", "-t", "b:2").stdout)
    (job,) = printed["scrape_configs"]
    assert (job["job_name"], job["static_configs"]) == ("broker", [{"targets": ["a:1", "b:2"]}])
    assert "rule_files" not in printed


def test_alerts_are_printed_as_prometheus_reads_them() -> None:
    (group,) = yaml.safe_load(run("alerts", "print").stdout)["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) > 10
    assert all(rule["expr"] and rule["annotations"]["description"] for rule in group["rules"])


def test_install_into_a_directory_writes_what_provisioning_reads(tmp_path: Path) -> None:
    result = run("dashboards", "install", "-d", str(tmp_path / "new"), "-t", "a:1")
    written = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.*")}
    dashboards = {f"dashboards/{name}.json" for name in DASHBOARDS}
    assert written == {*dashboards, "grafana-provider.yml", "interpulse-alerts.yml", "prometheus.yml"}
    assert {str(tmp_path / "new" / name) for name in written} == set(result.stdout.split())
    (provider,) = yaml.safe_load((tmp_path / "new" / "grafana-provider.yml").read_text())["providers"]
    assert provider["options"]["path"] == str(tmp_path / "new" / "dashboards")
    assert yaml.safe_load((tmp_path / "new" / "prometheus.yml").read_text())["rule_files"] == ["interpulse-alerts.yml"]


def test_install_into_a_place_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("dashboards", "install", "-d", str(tmp_path / "file" / "below"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


class Grafana(BaseHTTPRequestHandler):
    """Takes dashboards of those that have its token."""

    taken: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        allowed = self.headers["Authorization"] == "Bearer secret"
        if allowed and self.path == "/api/dashboards/db":
            self.taken.append(json.loads(body))
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(b"{}" if allowed else b'{"message":"Unauthorized"}')

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def grafana() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    taken: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Grafana,), {"taken": taken}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_install_into_a_grafana_replaces_its_dashboards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFANA_TOKEN", "secret")
    with grafana() as (url, taken):
        result = run("dashboards", "install", "--grafana-url", url + "/", "--token", "env:GRAFANA_TOKEN")
        assert result.stdout.split() == [f"{url}/d/interpulse-{name}" for name in DASHBOARDS]
    assert [body["dashboard"]["uid"] for body in taken] == [f"interpulse-{name}" for name in DASHBOARDS]
    assert all(body["overwrite"] for body in taken)


def test_install_when_grafana_refuses_then_says_why() -> None:
    with grafana() as (url, taken):
        result = run("dashboards", "install", "-g", url, "--token", "wrong")
    assert (result.exit_code, taken) == (4, [])
    assert "Unauthorized" in result.stderr
    result = run("dashboards", "install", "-g", url)
    assert result.exit_code == 5
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["-d", "x", "-g", "http://y"]])
def test_install_needs_one_place(arguments: list[str]) -> None:
    result = run("dashboards", "install", *arguments)
    assert result.exit_code == 2
    assert "Either --directory or --grafana-url" in result.stderr


def test_token_of_a_variable_that_is_not_there_is_refused() -> None:
    result = run("dashboards", "install", "-g", "http://127.0.0.1:1", "--token", "env:INTERPULSE_NO_SUCH_VARIABLE")
    assert result.exit_code == 2
    assert "no variable INTERPULSE_NO_SUCH_VARIABLE" in result.stderr
