"""The archive of Spark's classes is found by the Java and the PySpark that it was made with, and by no other."""

import os
import subprocess
from pathlib import Path

import pytest

from interpulse.spark import class_archive
from interpulse.spark.class_archive import ArchiveFailed, archive_path, java_options, make_archive


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _jars_of_pyspark(monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java whose release can be changed."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text('JAVA_VERSION="17.0.15"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


def test_path_when_java_is_updated_then_is_another(java, cache):
    before = archive_path()
    assert before is not None
    assert before.parent == cache / "interpulse"
    assert archive_path() == before
    (java / "release").write_text('JAVA_VERSION="17.0.16"')
    assert archive_path() != before


def test_path_when_java_says_no_release_then_its_program_counts(java):
    before = archive_path()
    (java / "release").unlink()
    assert archive_path() not in (before, None)


def test_path_when_java_gets_the_jars_of_another_spark_then_is_another(java, monkeypatch, tmp_path):
    before = archive_path()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert archive_path() != before


def test_path_when_spark_was_installed_again_in_its_place_then_is_another(java, monkeypatch, tmp_path):
    jar = tmp_path / "jars" / "spark-core.jar"
    jar.parent.mkdir()
    jar.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    before = archive_path()
    assert archive_path() == before
    os.utime(jar, (1, 1))
    assert archive_path() != before


def test_archive_when_made_again_then_replaces_the_older_ones_of_its_place(java, cache, monkeypatch):
    def train(spark, options, scratch):
        Path(options.rpartition("=")[2]).touch()
        return subprocess.CompletedProcess([], 0, "")

    monkeypatch.setattr(class_archive, "_run_training", train)
    of_another_place = cache / "interpulse" / "spark-classes-0-1.jsa"
    make_archive()
    of_another_place.touch()
    (java / "release").write_text('JAVA_VERSION="17.0.16"')
    made = make_archive()
    assert made == archive_path()
    assert set((cache / "interpulse").iterdir()) == {made, of_another_place}


def test_options_when_there_is_an_archive_then_name_it(java):
    quick = java_options()
    assert "SharedArchiveFile" not in quick
    path = archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.touch()
    assert java_options() == f"{quick} -Xlog:cds=off -Xlog:cds+dynamic=off -XX:SharedArchiveFile={path}"


def test_archive_when_there_is_no_java_then_says_what_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_path() is None
    assert "SharedArchiveFile" not in java_options()
    with pytest.raises(ArchiveFailed, match="Java 17 or newer and the spark extra are needed"):
        make_archive()


def test_archive_when_java_cannot_run_then_shows_what_was_printed_and_leaves_nothing(java, cache):
    (java / "bin" / "java").write_text("#!/bin/sh\necho no such Java >&2\nexit 3\n")
    with pytest.raises(ArchiveFailed, match=r"(?s)Java wrote no archive of Spark's classes .*no such Java"):
        make_archive()
    assert list((cache / "interpulse").iterdir()) == []
