"""Dockerfile and compose file, as far as they can be followed without a container engine.

The build stage runs as a script below an empty directory, what it built starts as the image would start it, and the
settings of the compose file are read by the broker.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from interpulse.broker.config.broker_config import settings_by_key
from interpulse.broker.config.config_sources import load_config
from tests.guides.pages import HOWTO, ROOT
from tests.guides.walk import UV
from tests.house.sources import tracked_files
from tests.support.standalone_process import free_port

TRIES: tuple[list[str], ...] = (["--offline"], [])
SECONDS_MAX = 600


def instructions() -> list[tuple[str, str]]:
    parser = DockerfileParser(fileobj=BytesIO((ROOT / "Dockerfile").read_bytes()))
    return [(step["instruction"], step["value"]) for step in parser.structure if step["instruction"] != "COMMENT"]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for step in instructions():
        if step[0] == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def values(stage: list[tuple[str, str]], instruction: str) -> list[str]:
    return [value for name, value in stage if name == instruction]


def variables(stage: list[tuple[str, str]]) -> dict[str, str]:
    return dict(word.split("=", 1) for value in values(stage, "ENV") for word in shlex.split(value))


def broker_of_compose() -> dict[str, Any]:
    broker: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["broker"]
    return broker


def test_compose_when_read_then_its_settings_are_ours_and_its_ports_are_those_of_the_image() -> None:
    broker, image = broker_of_compose(), stages()[-1]
    environment = {**variables(image), **broker["environment"]}
    loaded = load_config(environment=environment)
    assert not loaded.warnings
    config = loaded.config
    assert (config.bind_address, config.advertised_address) == ("0.0.0.0", "localhost")
    assert config.broker_delete_inactive_topics_enabled is False
    ports = [f"{config.broker_service_port}", f"{config.web_service_port}"]
    assert values(image, "EXPOSE") == [" ".join(ports)]
    assert broker["ports"] == [f"127.0.0.1:{port}:{port}" for port in ports]
    assert broker["volumes"] == [f"data:{config.data_dir}"]
    assert values(image, "VOLUME") == [config.data_dir]


def test_compose_when_changed_then_the_page_explains_every_setting() -> None:
    page = (HOWTO / "run-in-containers.md").read_text()
    told = broker_of_compose()["environment"]
    assert [key for key in told if key not in page] == ["clusterName"]  # the default, as everywhere
    assert all(key.removeprefix("PULSAR_PREFIX_") in settings_by_key() for key in told)


def test_dockerfile_when_it_copies_then_names_files_of_the_repository_that_are_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [word for value in values(stages()[0], "COPY") if "--from" not in value for word in value.split()[:-1]]
    assert set(copied) == kept
    tracked = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert kept <= tracked


class Built:
    """The image's files below a directory; a path of the image is one below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._work = root
        self._environment = {"PATH": f"{root}/bin:{os.environ['PATH']}", "HOME": os.environ["HOME"]}
        (root / "bin").mkdir(parents=True)
        self._provide_uv()

    def here(self, text: str) -> str:
        return re.sub(r"(?<![\w.:/])/(?=(src|opt|data)\b)", f"{self.root}/", text)

    def build(self, stage: list[tuple[str, str]]) -> None:
        for instruction, value in stage:
            if instruction == "ENV":
                self._environment.update({name: self.here(text) for name, text in variables([("ENV", value)]).items()})
            elif instruction == "WORKDIR":
                self._work = Path(self.here(value))
                self._work.mkdir()
            elif instruction == "COPY" and "--from" not in value:
                self._copy(value.split()[:-1])
            elif instruction == "RUN":
                line = ["bash", "-ec", self.here(value)]
                subprocess.run(line, cwd=self._work, env=self._environment, check=True, timeout=SECONDS_MAX)
            else:
                assert instruction == "FROM" or "ghcr.io/astral-sh/uv" in value, (
                    f"{instruction} {value} is not followed"
                )

    def program(self, image: list[tuple[str, str]], given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """The command line of the image and its environment, with what ``docker run -e`` gives."""
        line = [word for name in ("ENTRYPOINT", "CMD") for word in json.loads(values(image, name)[0])]
        environment = {name: self.here(value) for name, value in variables(image).items()} | dict(given)
        environment["PATH"] = environment["PATH"].replace("$PATH", self._environment["PATH"])
        return line, environment

    def _copy(self, names: list[str]) -> None:
        for name in names:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self._work / name)

    def _provide_uv(self) -> None:
        """In place of uv's image: what the cache has is taken from there, and Python is the one of this test."""
        tries = " || ".join(" ".join([str(UV), *offline, '"$@"']) for offline in TRIES)
        wrapper = self.root / "bin" / "uv"
        wrapper.write_text(f"#!/bin/sh\nexport UV_PYTHON={getattr(sys, '_base_executable', sys.executable)}\n{tries}\n")
        wrapper.chmod(0o755)


def healthcheck(image: list[tuple[str, str]], web_port: str) -> list[str]:
    _, _, command = values(image, "HEALTHCHECK")[0].partition("CMD ")
    line: list[str] = json.loads(command)
    assert sum("127.0.0.1:8080" in word for word in line) == 1
    return [word.replace("8080", web_port) for word in line]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    built = Built(tmp_path / "image")
    built.build(stages()[0])
    return built


@pytest.mark.slow
def test_image_when_its_steps_are_done_then_the_broker_starts_as_compose_starts_it(built: Built) -> None:
    image, compose, web = stages()[-1], broker_of_compose()["environment"], free_port()
    ports = {"PULSAR_PREFIX_brokerServicePort": "0", "webServicePort": web}
    line, environment = built.program(image, {**compose, **ports})
    with subprocess.Popen(line, env=environment, cwd=built.root, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            said = [next(broker.stdout).strip() for _ in range(4)]
            assert said[1:] == [f"web service: http://localhost:{web}", f"data directory: {built.root}/data", "ready"]
            subprocess.run(healthcheck(image, web), env=environment, check=True, timeout=60)
            for host in ("localhost", "broker"):
                request = urllib.request.Request(f"http://127.0.0.1:{web}/admin/v2/clusters", headers={"Host": host})
                assert json.load(urllib.request.urlopen(request, timeout=60)) == ["standalone"]
        finally:
            broker.terminate()
        assert broker.wait(timeout=60) == 0
    assert subprocess.run(healthcheck(image, web), env=environment, stderr=subprocess.DEVNULL, check=False).returncode
