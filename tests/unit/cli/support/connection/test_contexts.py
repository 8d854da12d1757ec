"""The file of contexts, and what counts when several sources name a setting."""

import json
import stat
from pathlib import Path

import click
import pytest

from interpulse.cli.support.connection.contexts import Contexts, contexts_path, holds_secret
from interpulse.cli.support.connection.settings import ConnectionSettings

TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
PROD = {
    "brokerServiceUrl": "pulsar://prod",
    "webServiceUrl": "http://prod",
    "authPlugin": TOKEN,
    "authParams": "token:p",
}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return contexts_path()


def save(**contexts: dict[str, str]) -> None:
    Contexts(None, contexts).save(contexts_path())


def test_contexts_when_saved_then_are_read_again_and_nobody_else_can(path: Path) -> None:
    Contexts("prod", {"prod": PROD}).save(path)
    assert Contexts.load(path) == Contexts("prod", {"prod": PROD})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["contexts.json"]


def test_contexts_when_others_can_read_credentials_then_are_refused(path: Path) -> None:
    save(prod=PROD)
    path.chmod(0o640)
    with pytest.raises(click.UsageError, match="others than you can read it: chmod 600"):
        Contexts.load(path)


def test_contexts_when_others_can_read_what_is_no_secret_then_are_used(path: Path) -> None:
    save(prod=PROD | {"authParams": "file:/run/token"})
    path.chmod(0o644)
    assert "prod" in Contexts.load(path).settings


@pytest.mark.parametrize(
    ("params", "secret"),
    [
        ("token:abc", True),
        ('{"userId":"a","password":"b"}', True),
        ("file:/x", False),
        ("env:TOKEN", False),
        ("", False),
    ],
)
def test_credentials_when_in_the_file_themselves_then_are_a_secret(params: str, secret: bool) -> None:
    assert holds_secret({"authParams": params}) is secret


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nonsense", "is not a file of contexts"),
        ("[]", "has no object of contexts"),
        ('{"contexts": {"a": {"brokerServiceUrl": 1}}}', "context 'a' is not an object of strings"),
        ('{"contexts": {"a": {"webServiceURL": "x"}}}', "unknown key 'webServiceURL'"),
        ('{"contexts": {}, "current": "a"}', "the context in use, 'a', is none of them"),
    ],
)
def test_contexts_when_file_is_damaged_then_says_how(path: Path, content: str, words: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(click.UsageError, match=words):
        Contexts.load(path)


def test_flag_wins_over_environment_context_file_and_default(tmp_path: Path) -> None:
    save(prod={"brokerServiceUrl": "pulsar://context", "webServiceUrl": "http://context"}, other=PROD)
    conf = tmp_path / "client.conf"
    conf.write_text("webServiceUrl=http://file\nrequestTimeoutSeconds=7\n")
    environment = {"PULSAR_CLIENT_CONF": str(conf), "INTERPULSE_CONTEXT": "prod"}
    found = ConnectionSettings.resolve({"webServiceUrl": None}, environment)
    assert (found.service_url, found.admin_url) == ("pulsar://context", "http://context")
    assert found.request_timeout_ms == 7000
    assert ConnectionSettings.resolve({}, environment | {"webServiceUrl": "http://env"}).admin_url == "http://env"
    flags = {"webServiceUrl": "http://flag", "context": "other"}
    chosen = ConnectionSettings.resolve(flags, environment)
    assert (chosen.admin_url, chosen.service_url, chosen.auth_params) == ("http://flag", "pulsar://prod", "token:p")


def test_credentials_of_client_conf_do_not_go_to_a_context(
    tmp_path: Path,
) -> None:
    save(prod={"brokerServiceUrl": "pulsar://prod"})
    conf = tmp_path / "client.conf"
    conf.write_text(f"webServiceUrl=http://file\nauthPlugin={TOKEN}\nauthParams=token:of-another\n")
    found = ConnectionSettings.resolve({"context": "prod"}, {"PULSAR_CLIENT_CONF": str(conf)})
    assert found.credentials() is None
    with pytest.raises(click.UsageError, match="The context prod has no webServiceUrl: give --admin-url"):
        assert found.admin_url
    assert found.paired_admin_url is None


def test_context_when_not_there_then_the_nearest_name_is_told() -> None:
    save(production=PROD)
    with pytest.raises(click.UsageError, match=r"There is no context 'produktion'\. Did you mean 'production'"):
        ConnectionSettings.resolve({"context": "produktion"}, {})


def test_context_when_deleted_then_is_in_use_no_more(path: Path) -> None:
    Contexts("prod", {"prod": PROD}).without("prod").save(path)
    assert json.loads(path.read_text()) == {"current": None, "contexts": {}}
