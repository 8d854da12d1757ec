"""Failures become one line and an exit code."""

import pytest

from interpulse.cli.support.running import failure
from interpulse.model import errors
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin


@pytest.mark.parametrize(
    ("status", "reason", "exit_code"),
    [
        (404, "Tenant does not exist", 1),
        (409, "Conflict of some kind", 1),
        (500, "broken", 1),
        (503, "not ready", 1),
        (401, "who are you", 4),
        (403, "Don't have permission", 4),
        (403, "Invalid cluster id: nope", 1),
    ],
)
def test_command_when_refused_then_prints_reason_and_status(
    web: StubWeb, run_admin: RunAdmin, status: int, reason: str, exit_code: int
) -> None:
    web.answer("GET", "/admin/v2/tenants", {"reason": reason}, status=status)
    result = run_admin("tenants", "list")
    assert result.exit_code == exit_code
    assert result.stderr.startswith(f"Error: {reason} (HTTP {status} ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_command_when_no_server_listens_then_names_the_address(
    web: StubWeb, run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_admin("--admin-url", "http://127.0.0.1:1", "tenants", "list")
    assert (result.exit_code, result.stderr) == (5, "Error: Cannot reach http://127.0.0.1:1: Connection refused\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--admin-url", "pulsar://x", "tenants", "list"], "not a web service URL: 'pulsar://x'"),
        (["--auth-plugin", "x.Y", "tenants", "list"], "not supported"),
        (["tenants", "get"], "Missing argument 'TENANT'"),
        (["tenants", "nonsense"], "No such command 'nonsense'"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_command_when_used_wrongly_then_exits_with_2(run_admin: RunAdmin, arguments: list[str], words: str) -> None:
    result = run_admin(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_command_when_given_a_token_then_sends_it(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/tenants", ["public"])
    plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
    result = run_admin("--auth-plugin", plugin, "--auth-params", "token:abc", "tenants", "list")
    assert (result.exit_code, result.stdout) == (0, "public\n")
    assert web.last.headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(errors.OperationTimeout("late"), 5), (errors.NotConnected("gone"), 5), (errors.TopicNotFound(""), 1)],
)
def test_failure_when_not_from_rest_then_has_no_status(error: errors.PulsarError, exit_code: int) -> None:
    found = failure(error)
    assert (found.exit_code, found.message) == (exit_code, str(error) or "TopicNotFound")
