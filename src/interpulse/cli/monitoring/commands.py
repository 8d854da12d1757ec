"""Commands ``interpulse dashboards`` and ``interpulse alerts``."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from interpulse.cli.monitoring.alerts import rules
from interpulse.cli.monitoring.dashboards import DASHBOARDS
from interpulse.cli.monitoring.grafana import dashboard_json
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.running import NOT_ALLOWED, UNREACHABLE, UNUSABLE, CommandFailed
from interpulse.terminal.formats import to_yaml
from interpulse.terminal.option_groups import option

_SCRAPING: Final = "scraping"
_RULE_FILE: Final = "interpulse-alerts.yml"
_TIMEOUT_SECONDS: Final = 30

_targets = option(
    "-t --target targets",
    "Web service of a broker, for the scrape configuration; several are possible.",
    default=("localhost:8080",),
    metavar="HOST:PORT",
    multiple=True,
)


@click.group(cls=CommandGroup)
def dashboards() -> None:
    """Print or install dashboards for Grafana, and the scrape configuration that they need."""


@dashboards.command("print")
@click.argument("name", type=click.Choice([*DASHBOARDS, _SCRAPING]))
@_targets
def print_one(name: str, targets: tuple[str, ...]) -> None:
    """Print a dashboard as JSON, or the scrape configuration of Prometheus."""
    if name == _SCRAPING:
        click.echo(to_yaml(_scrape_configuration(targets)), nl=False)
    else:
        click.echo(json.dumps(dashboard_json(DASHBOARDS[name]), indent=2))


@dashboards.command()
@option(
    "-d --directory",
    "Write files for Grafana's provisioning and for Prometheus here.",
    click.Path(file_okay=False, path_type=Path),
)
@option("-g --grafana-url", "Send the dashboards to this Grafana.", metavar="URL")
@option("--token", "Token of a service account of that Grafana; env:NAME takes it from a variable.", metavar="TOKEN")
@_targets
def install(directory: Path | None, grafana_url: str | None, token: str | None, targets: tuple[str, ...]) -> None:
    """Write the dashboards to a directory, or send them to Grafana. Dashboards of the same name are replaced."""
    if (directory is None) == (grafana_url is None):
        raise click.UsageError("Either --directory or --grafana-url needs to be passed")
    if directory is not None:
        _write(directory, targets)
    elif grafana_url is not None:
        for name, dashboard in DASHBOARDS.items():
            _send(grafana_url, _token(token), dashboard_json(dashboard))
            click.echo(f"{grafana_url.rstrip('/')}/d/interpulse-{name}")


@click.group(cls=CommandGroup)
def alerts() -> None:
    """Print alert rules for Prometheus."""


@alerts.command("print")
def print_rules() -> None:
    """Print the alert rules as a file for Prometheus' rule_files."""
    click.echo(to_yaml(rules()), nl=False)


def _scrape_configuration(targets: Sequence[str], *, rule_file: str | None = None) -> dict[str, Any]:
    """Return a scrape configuration. ``targets`` are ``host:port`` of each broker's web service.

    Public dashboards for Apache Pulsar select brokers by ``job="broker"``, those for Kubernetes by the pod's name. The
    broker's own labels, such as the cluster, are kept.
    """
    broker = {
        "job_name": "broker",
        "honor_labels": True,
        "metrics_path": "/metrics",
        "scrape_interval": "15s",
        "static_configs": [{"targets": list(targets)}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "regex": r"(.+):\d+", "target_label": "kubernetes_pod_name"}
        ],
    }
    rule_files = {"rule_files": [rule_file]} if rule_file is not None else {}
    return {"global": {"evaluation_interval": "15s"}, **rule_files, "scrape_configs": [broker]}


def _write(directory: Path, targets: tuple[str, ...]) -> None:
    provider = {
        "name": "interpulse",
        "type": "file",
        "folder": "Interpulse",
        "options": {"path": str((directory / "dashboards").resolve())},
    }
    files = {
        **{
            f"dashboards/{name}.json": json.dumps(dashboard_json(dashboard), indent=2)
            for name, dashboard in DASHBOARDS.items()
        },
        "grafana-provider.yml": to_yaml({"apiVersion": 1, "providers": [provider]}),
        "prometheus.yml": to_yaml(_scrape_configuration(targets, rule_file=_RULE_FILE)),
        _RULE_FILE: to_yaml(rules()),
    }
    try:
        (directory / "dashboards").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (directory / name).write_text(content.rstrip("\n") + "\n")
            click.echo(str(directory / name))
    except OSError as error:
        raise CommandFailed(f"{directory} cannot be written: {error}", UNUSABLE) from None


def _send(url: str, token: str | None, dashboard: Mapping[str, Any]) -> None:
    body = json.dumps({"dashboard": dashboard, "overwrite": True, "message": "interpulse dashboards install"})
    request = urllib.request.Request(f"{url.rstrip('/')}/api/dashboards/db", body.encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        with error:
            code = NOT_ALLOWED if error.code in (401, 403) else 1
            reason = error.read(500).decode(errors="replace").strip() or error.reason
            raise CommandFailed(
                f"Grafana at {url} refuses {dashboard['title']!r}: {error.code} {reason}", code
            ) from None
    except (OSError, ValueError) as error:
        raise CommandFailed(f"Grafana at {url} cannot be reached: {error}", UNREACHABLE) from None


def _token(token: str | None) -> str | None:
    if token is None or not token.startswith("env:"):
        return token
    name = token.removeprefix("env:")
    if not os.environ.get(name):
        raise CommandFailed(f"--token {token}: the environment has no variable {name}", UNUSABLE)
    return os.environ[name]
