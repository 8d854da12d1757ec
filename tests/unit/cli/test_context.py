"""``interpulse context``, as it is typed."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interpulse.cli.main import main
from tests.support.stub_web import Answer, StubWeb

TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    monkeypatch.delenv("INTERPULSE_CONTEXT", raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_context_when_created_and_used_then_commands_go_to_its_cluster() -> None:
    with StubWeb(otherwise=lambda asked: Answer(200, b"[]", {"Content-Type": "application/json"})) as web:
        created = run(
            "context", "create", "stub", "--admin-url", web.url, "--auth-plugin", TOKEN, "--auth-params", "token:t"
        )
        assert (created.exit_code, created.output) == (0, "")
        assert run("context", "use", "stub").exit_code == 0
        assert run("admin", "tenants", "list").exit_code == 0
        assert web.last[:2] == ("GET", "/admin/v2/tenants")


def test_context_when_shown_then_its_token_is_not() -> None:
    run(
        "context",
        "create",
        "a",
        "--url",
        "pulsar://a",
        "--auth-plugin",
        TOKEN,
        "--auth-params",
        "token:secret",
        "--use",
    )
    shown = run("context", "show")
    assert "brokerServiceUrl    pulsar://a" in shown.output
    assert "secret" not in shown.output


def test_contexts_when_listed_then_the_one_in_use_has_a_star() -> None:
    run("context", "create", "a", "--url", "pulsar://a")
    run("context", "create", "b", "--url", "pulsar://b", "--use")
    assert run("context", "list").output == "  a\n* b\n"
    run("context", "use", "--none")
    assert run("context", "list").output == "  a\n  b\n"
    run("context", "delete", "a")
    assert run("context", "list").output == "  b\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "a"], "A context has an address"),
        (["create", "a", "--url", "nonsense"], "not a service URL: 'nonsense'"),
        (["create", "a", "--url", "pulsar://x", "--context", "b"], "--context has no meaning here"),
        (["create", "a", "--url", "pulsar://x", "--auth-plugin", "x.Athenz"], "not supported"),
        (["create", "there", "--url", "pulsar://x"], "There is a context 'there' already: --replace"),
        (["use"], "Name a context, or give --none"),
        (["use", "ther"], "Did you mean 'there'?"),
        (["show"], "No context is in use"),
        (["delete", "x"], "There is no context 'x'"),
    ],
)
def test_context_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    run("context", "create", "there", "--url", "pulsar://there")
    result = run("context", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
