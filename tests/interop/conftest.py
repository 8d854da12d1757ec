"""A real Pulsar for the tests of this folder: one that the environment names, else one started once per session."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.interop import go_program
from tests.interop.pulsar_with_tokens import PulsarWithTokens, start_pulsar_with_tokens
from tests.interop.real_pulsar import Address, RealPulsar, address_from_environment, run_java

CHECKS = Path(__file__).with_name("checks")

JavaCheck = Callable[..., str]


class RealPulsarFactory(Protocol):
    """Starts a cluster of a test's own, stopped at the end of that test."""

    def __call__(self, cluster_name: str = ..., settings: Mapping[str, str] | None = ...) -> RealPulsar: ...


@pytest.fixture(scope="session")
def real_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """The real Pulsar shared by the session; tests must use namespaces or topic names of their own."""
    named = address_from_environment()
    if named is not None:
        yield named
        return
    with RealPulsar(tmp_path_factory.mktemp("real-pulsar")) as pulsar:
        yield pulsar.address


@pytest.fixture(scope="session")
def pulsar_with_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarWithTokens]:
    """Shared by the session like `real_pulsar`."""
    with start_pulsar_with_tokens(tmp_path_factory.mktemp("pulsar-with-tokens")) as cluster:
        yield cluster


@pytest.fixture
def start_real_pulsar(tmp_path: Path) -> Iterator[RealPulsarFactory]:
    """For tests that stop, kill or alter a cluster, or need other settings: it is theirs alone."""
    with ExitStack() as clusters:

        def start(cluster_name: str = "standalone", settings: Mapping[str, str] | None = None) -> RealPulsar:
            pulsar = RealPulsar(tmp_path / cluster_name, cluster_name=cluster_name, settings=settings)
            return clusters.enter_context(pulsar)

        yield start


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of `go_client/`."""
    return go_program.build(tmp_path_factory.mktemp("go"))


@pytest.fixture(scope="session")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of `go_history/`."""
    return go_program.build(tmp_path_factory.mktemp("go-history"), go_program.HISTORY)


@pytest.fixture(scope="session")
def java_check() -> JavaCheck:
    """`java_check("Name.java", *arguments)` runs a program of `checks/` with the Java clients, returns its output."""

    def check(name: str, *arguments: str) -> str:
        return run_java(CHECKS / name, *arguments).decode().strip()

    return check
