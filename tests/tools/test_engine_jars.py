"""What is said where ZooKeeper and BookKeeper cannot be had: what is missing, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.engines import jars
from tools.engines.jars import Unavailable, class_path
from tools.engines.java import java_executable

MAVEN = """#!/bin/sh
echo '[WARNING] slow'
echo '[ERROR] Could not transfer artifact a:b:pom:1 from central: Unknown host repo.maven.apache.org'
echo '[ERROR] To see the full stack trace, re-run Maven with the -e switch.'
exit 1
"""


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no program at all and no jars; the directory of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return programs


def test_jars_when_there_is_no_maven_then_it_is_named_with_the_remedy() -> None:
    with pytest.raises(Unavailable) as refused:
        class_path()
    place = jars.cache_directory()
    assert str(refused.value) == (
        "Maven (mvn) is needed to get ZooKeeper, BookKeeper and Pulsar and was not found: install it, "
        f"or copy {place} from a machine that has it"
    )


def test_jars_when_there_is_no_network_then_the_first_error_of_maven_is_told(empty: Path) -> None:
    maven = empty / "mvn"
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    with pytest.raises(Unavailable) as refused:
        class_path()
    assert str(refused.value).startswith("Maven did not get ZooKeeper, BookKeeper and Pulsar: connect this machine to")
    assert str(refused.value).endswith("from central: Unknown host repo.maven.apache.org")
    assert not jars.cache_directory().exists()


def test_jars_when_they_are_in_the_cache_then_nothing_is_asked_of_maven() -> None:
    jars.cache_directory().mkdir(parents=True)
    assert class_path() == f"{jars.cache_directory()}/*"


def test_java_when_there_is_none_then_the_package_and_the_variable_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in (None, tmp_path):
        if home is not None:
            monkeypatch.setenv("JAVA_HOME", str(home))
        with pytest.raises(
            Unavailable, match=r"Java 17 or newer is needed .* openjdk-17-jre-headless\), or set JAVA_HOME"
        ):
            java_executable()
