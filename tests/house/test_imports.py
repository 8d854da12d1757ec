"""What an import or a command's help may cost: applications pay it at every start, and Spark in every worker."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("interpulse")
HELP_SECONDS_MAX = 0.5
STARTED_WITH_MAX = 302
STARTED_WITH = (
    "interpulse.cli.main",
    "interpulse.cli.programs",
    "interpulse.cli.programs.broker",
    "interpulse.cli.programs.serving",
    "interpulse.cli.support",
    "interpulse.cli.support.codec",
    "interpulse.client.credentials",
    "interpulse.client.tls",
    "interpulse.client.transport",
    "interpulse.client.transport.backoff",
    "interpulse.client.transport.http_errors",
)
"""Modules of the command line and of the client that a broker needs before it serves."""

OBSERVE = """
import json, sys, threading
before = set(sys.modules)
import {module}
loaded = sorted({{name.split(".")[0] for name in set(sys.modules) - before}})
rooms = sorted(".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("interpulse."))
modules = sorted(name for name in sys.modules if name.startswith("interpulse."))
print(json.dumps({{"loaded": loaded, "rooms": rooms, "modules": modules, "threads": threading.active_count()}}))
"""


def observe_import(module: str) -> dict[str, list[str] | int]:
    """What a fresh interpreter has loaded and started after importing the module."""
    done = subprocess.run(
        [sys.executable, "-c", OBSERVE.format(module=module)], capture_output=True, text=True, check=True, timeout=60
    )
    observed: dict[str, list[str] | int] = json.loads(done.stdout)
    return observed


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("interpulse", {"asyncio", "aiohttp", "google", "pyspark", "pulsar", "cramjam", "fastavro"}),
        ("interpulse.client", {"pyspark", "pyarrow", "pulsar", "uvloop"}),
        ("interpulse.sync", {"pyspark", "pyarrow", "pulsar", "uvloop"}),
        (
            "interpulse.broker.app",
            {"pyspark", "pyarrow", "pulsar", "cramjam", "jwt", "prometheus_client", "re2", "jinja2", "markupsafe"},
        ),
        ("interpulse.cli.main", {"asyncio", "aiohttp", "google", "pyspark", "pulsar"}),
        ("pyspark_interpulse", {"aiohttp", "pulsar", "uvloop"}),
    ],
)
def test_import_when_fresh_then_loads_nothing_unneeded_and_starts_nothing(module: str, unwanted: set[str]) -> None:
    observed = observe_import(module)
    assert isinstance(observed["loaded"], list)
    assert unwanted.isdisjoint(observed["loaded"])
    assert observed["threads"] == 1


@pytest.mark.parametrize(
    ("module", "closed_rooms"),
    [
        ("interpulse.client", {"interpulse.broker", "interpulse.storage", "interpulse.cli", "interpulse.spark"}),
        ("pyspark_interpulse", {"interpulse.broker", "interpulse.storage", "interpulse.cli"}),
        ("interpulse.broker.app", {"interpulse.spark", "interpulse.cli"}),
    ],
)
def test_import_when_fresh_then_stays_out_of_other_rooms(module: str, closed_rooms: set[str]) -> None:
    observed = observe_import(module)
    assert isinstance(observed["rooms"], list)
    assert closed_rooms.isdisjoint(observed["rooms"])


def test_broker_when_imported_then_loads_no_client_of_messages() -> None:
    """Its calls to other brokers are HTTP: what produces and consumes would be 2 MB of an idle broker."""
    observed = observe_import("interpulse.broker.app")
    assert isinstance(observed["modules"], list)
    assert "interpulse.client.client" not in observed["modules"]


def test_standalone_when_it_starts_then_loads_few_modules_before_its_ports_open() -> None:
    """A start is imports for the most part, about a millisecond a module: more of them need a reason."""
    observed = observe_import("interpulse.cli.main, interpulse.cli.programs.broker, interpulse.broker.app")
    assert isinstance(observed["modules"], list)
    loaded = {name for name in observed["modules"] if name.startswith(("interpulse.cli.", "interpulse.client."))}
    assert loaded == {*STARTED_WITH}
    assert len(observed["modules"]) <= STARTED_WITH_MAX


def test_help_when_asked_then_costs_less_than_half_a_second() -> None:
    """Processor time, 0.1 s on a quick machine; one of many tries is enough, as files may be cold."""
    assert any(_help_seconds() < HELP_SECONDS_MAX for _ in range(20))


def _help_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True, timeout=60, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "standalone" in done.stdout
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
