"""Running commands against a web service whose answers the test chooses."""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from click.testing import CliRunner, Result

from interpulse.cli.admin.admin import admin
from tests.support.stub_web import StubWeb


class RunAdmin(Protocol):
    """Runs one command of the administration."""

    def __call__(self, *arguments: str) -> Result: ...


class SentBy(Protocol):
    """Runs a command that prints nothing, and returns method, target and body of its last request."""

    def __call__(self, *arguments: str) -> tuple[str, str, Any]: ...


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubWeb]:
    """The web service that commands talk to."""
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    with StubWeb() as stub:
        monkeypatch.setenv("webServiceUrl", stub.url)
        yield stub


@pytest.fixture
def run_admin(web: StubWeb) -> RunAdmin:
    """`run_admin("topics", "list", "a/b")` as a user would type it after `interpulse-admin`."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(admin, arguments, prog_name="interpulse-admin", catch_exceptions=False)

    return run


@pytest.fixture
def sent_by(web: StubWeb, run_admin: RunAdmin) -> SentBy:
    """`sent_by("topics", "delete", "t")`, for commands that change something."""

    def sent(*arguments: str) -> tuple[str, str, Any]:
        result = run_admin(*arguments)
        assert (result.exit_code, result.output) == (0, "")
        return web.last[:3]

    return sent
