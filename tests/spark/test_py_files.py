"""The package handed to Spark as an archive, where no Python has it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.spark.archived_package import archive, bare_python, needed


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return str(bare_python(tmp_path_factory.mktemp("bare")))


def run(*command, **environment):
    return subprocess.run(
        [str(part) for part in command], env=os.environ | environment, capture_output=True, text=True, timeout=400
    )


def test_archive_with_all_it_needs_reads_and_writes_what_is_not_compressed(python, broker, topic, tmp_path):
    package = archive(tmp_path / "packages.zip")
    program = Path(__file__).with_name("bare_program.py")
    done = run(python, program, broker.service_url, topic, PYTHONPATH=str(package))
    assert "checksums are slow: package crc32c is not installed" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "interpulse.model.errors.NotSupported: payloads in LZ4, ZSTD or SNAPPY need package cramjam"
    )


def test_archive_without_what_it_needs_names_the_package(python, broker, topic, tmp_path):
    package = archive(tmp_path / "interpulse.zip", with_dependencies=False)
    program = Path(__file__).with_name("bare_program.py")
    done = run(python, program, broker.service_url, topic, PYTHONPATH=str(package))
    assert done.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: package google is not installed where Spark's Python runs, and not in the archive"
    )


def test_archive_of_the_package_alone_when_the_rest_is_installed_then_is_as_fast_as_installed(broker, topic, tmp_path):
    """And takes every compression. What an archive holds besides would come before what is installed."""
    package = archive(tmp_path / "interpulse.zip", with_dependencies=False)
    program = Path(__file__).with_name("bare_program.py")
    python = bare_python(tmp_path / "environment", *needed("interpulse"))
    done = run(python, program, broker.service_url, topic, PYTHONPATH=str(package))
    assert (done.returncode, done.stderr) == (0, "")
