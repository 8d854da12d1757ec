"""The compiled codec below Python: formatted, without warnings, and under a sanitizer while bytes are made up."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.soak import soak

NATIVE = Path(__file__).parents[2] / "native"
FUZZ_SECONDS = soak(30, otherwise=8)
TARGET = "x86_64-unknown-linux-gnu"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no Rust toolchain")]


def cargo(*arguments: str, **variables: str) -> None:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(NATIVE / "target"), **variables}
    done = subprocess.run(["cargo", *arguments], cwd=NATIVE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def has(*arguments: str) -> bool:
    return (
        shutil.which("cargo") is not None and not subprocess.run(["cargo", *arguments], capture_output=True).returncode
    )


@pytest.mark.skipif(not has("fmt", "--version"), reason="the toolchain has no rustfmt")
def test_source_is_formatted() -> None:
    cargo("fmt", "--all", "--check")


@pytest.mark.skipif(not has("clippy", "--version"), reason="the toolchain has no clippy")
def test_source_has_no_warnings() -> None:
    cargo("clippy", "-q", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings")


@pytest.mark.skipif(not has("+nightly", "--version"), reason="address sanitizers need the nightly toolchain of Rust")
def test_any_bytes_when_read_under_a_sanitizer_then_no_fault() -> None:
    cargo(
        *("+nightly", "test", "-q", "--locked", "-p", "interpulse-frames", "--target", TARGET),
        RUSTFLAGS="-Zsanitizer=address",
        CARGO_TARGET_DIR=str(NATIVE / "target" / "sanitized"),
        FUZZ_SECONDS=str(FUZZ_SECONDS),
    )
