"""Credentials: sources, plug-ins, and the grant of an issuer."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from interpulse.client.credentials import ClientGrant, Credentials
from interpulse.model.errors import AuthenticationError

ISSUER = "https://issuer.example.org"
PLUGIN = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"
KEY = {"type": "client_credentials", "client_id": "app", "client_secret": "word", "issuer_url": ISSUER}
FORM = {"grant_type": "client_credentials", "client_id": "app", "client_secret": "word"}


def sources(directory: Path) -> list[str]:
    path = directory / "key.json"
    path.write_text(json.dumps(KEY))
    encoded = base64.b64encode(path.read_bytes()).decode()
    return [path.as_uri(), str(path), f"data:application/json;base64,{encoded}"]


def test_key_when_named_in_any_form_then_is_what_the_issuer_is_sent(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        for params in ({"issuerUrl": ISSUER, "privateKey": source}, {"issuer_url": ISSUER, "private_key": source}):
            credentials = Credentials.from_plugin(PLUGIN, json.dumps(params))
            assert credentials is not None
            assert (credentials.method, credentials.auth_method) == ("oauth2", "token")
            assert credentials.grant.form() == FORM
        assert Credentials.oauth2(ISSUER, source, audience="a", scope="s").grant.form() == FORM | {
            "audience": "a",
            "scope": "s",
        }


def test_client_when_given_by_id_and_secret_then_needs_no_file() -> None:
    params = json.dumps({"issuer_url": ISSUER, "client_id": "app", "client_secret": "word", "audience": "a"})
    assert ClientGrant.parse(params).form() == FORM | {"audience": "a"}


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ("", "needs {"),
        ("[]", "needs {"),
        ('{"privateKey": "file:///k"}', "issuerUrl is missing"),
        ('{"issuerUrl": "issuer", "privateKey": "file:///k"}', "issuerUrl is missing"),
        ('{"issuerUrl": "https://i"}', "privateKey is missing"),
        ('{"issuerUrl": "https://i", "client_id": "app"}', "privateKey is missing"),
        ('{"issuerUrl": "https://i", "privateKey": "k", "type": "password"}', "type 'password' is not offered"),
        ('{"issuerUrl": "https://i", "privateKey": "k", "audiense": "a"}', "audiense is not known"),
        ('{"issuerUrl": "https://i", "privateKey": "{\\"client_secret\\": \\"word\\"}"}', "is the file of the key"),
    ],
)
def test_parameters_when_they_cannot_be_used_then_say_why(params: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Credentials.from_plugin(PLUGIN, params)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"client_id": "app"}'])
def test_key_file_when_it_is_none_then_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "key.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(AuthenticationError, match=r"the key file .*key\.json (cannot be read|is not JSON)"):
        Credentials.oauth2(ISSUER, path.as_uri()).grant.form()


TOKEN_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
TLS_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationTls"
OAUTH2_PLUGIN = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"
BASIC_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationBasic"


@pytest.mark.parametrize("params", ["token:abc", "abc", '{"token": "abc"}'])
def test_token_plugin_when_given_any_known_form_then_bears_the_token(params: str) -> None:
    credentials = Credentials.from_plugin(TOKEN_PLUGIN, params)
    assert credentials is not None
    assert (credentials.method, credentials.http_header()) == ("token", "Bearer abc")


def test_token_file_when_renewed_then_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = Credentials.token(f"file://{file}")
    assert credentials.secret() == "one"
    file.write_text("two\n")
    assert credentials.secret() == "two"


def test_token_file_when_missing_then_names_it(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="nowhere cannot be read: No such file"):
        Credentials.token(f"file:{tmp_path}/nowhere").secret()


def test_token_in_environment_when_set_then_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc")
    assert Credentials.token("env:MY_TOKEN").secret() == "abc"
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(AuthenticationError, match="MY_TOKEN"):
        Credentials.token("env:MY_TOKEN").secret()


@pytest.mark.parametrize("params", ['{"userId": "jo", "password": "pw"}', "jo:pw"])
def test_basic_plugin_when_given_user_and_password_then_encodes_both(params: str) -> None:
    credentials = Credentials.from_plugin(BASIC_PLUGIN, params)
    assert credentials is not None
    assert credentials.http_header() == "Basic am86cHc="


@pytest.mark.parametrize("written", ['{"userId": "jo", "password": "p:w"}\n', "jo:p:w\n"])
def test_password_file_when_renewed_then_is_read_again(tmp_path: Path, written: str) -> None:
    file = tmp_path / "password"
    file.write_text("jo:old")
    credentials = Credentials.from_plugin(BASIC_PLUGIN, file.as_uri())
    assert credentials is not None
    assert (credentials.secret(), credentials.can_change) == ("jo:old", True)
    file.write_text(written)
    assert credentials.secret() == "jo:p:w"


@pytest.mark.parametrize("written", ["jo", '{"userId": "word"}', '{"userId"'])
def test_password_file_when_it_cannot_be_used_then_is_named_and_not_shown(tmp_path: Path, written: str) -> None:
    file = tmp_path / "password"
    file.write_text(written)
    with pytest.raises(AuthenticationError, match=f"{file} cannot be used: ") as refused:
        Credentials("basic", file.as_uri()).secret()
    assert "word" not in str(refused.value).replace("password", "")


def test_password_in_environment_when_set_then_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "jo:pw")
    credentials = Credentials.from_plugin(BASIC_PLUGIN, "env:MY_PASSWORD")
    assert credentials is not None
    assert credentials.secret() == "jo:pw"


@pytest.mark.parametrize("user", ["file", "env", "token", "{"])
def test_user_when_named_like_a_place_then_is_none(user: str) -> None:
    assert Credentials.basic(user, "/etc/passwd").secret() == f"{user}:/etc/passwd"


@pytest.mark.parametrize(
    ("plugin", "params"),
    [
        (TOKEN_PLUGIN, "file:///t.jwt"),
        (TOKEN_PLUGIN, "token:abc"),
        (BASIC_PLUGIN, "jo:pw"),
        (BASIC_PLUGIN, "file:///p"),
        (TLS_PLUGIN, "tlsCertFile:/c.pem,tlsKeyFile:/k.pem"),
        (OAUTH2_PLUGIN, '{"issuerUrl": "https://i", "privateKey": "file:///k"}'),
    ],
)
def test_credentials_when_written_as_plugin_and_source_then_are_read_as_the_same(plugin: str, params: str) -> None:
    credentials = Credentials.from_plugin(plugin, params)
    assert credentials is not None
    assert Credentials.from_plugin(credentials.plugin, credentials.source) == credentials


@pytest.mark.parametrize("plugin", [None, "", "org.apache.pulsar.client.impl.auth.AuthenticationDisabled"])
def test_plugin_when_none_then_no_credentials(plugin: str | None) -> None:
    assert Credentials.from_plugin(plugin, "whatever") is None


@pytest.mark.parametrize(
    ("plugin", "params"),
    [
        ("org.apache.pulsar.client.impl.auth.AuthenticationAthenz", "{}"),
        (TOKEN_PLUGIN, ""),
        (TOKEN_PLUGIN, "{}"),
        (TLS_PLUGIN, "tlsCertFile:/c.pem"),
        (TLS_PLUGIN, '{"tlsKeyFile": "/k.pem"}'),
        (BASIC_PLUGIN, "jo"),
        (BASIC_PLUGIN, '{"userId": "jo"}'),
    ],
)
def test_plugin_when_it_cannot_be_used_then_says_why(plugin: str, params: str) -> None:
    with pytest.raises(ValueError, match=r"support|missing|not JSON with the field|needs"):
        Credentials.from_plugin(plugin, params)


@pytest.mark.parametrize(
    ("params", "files"),
    [
        ("tlsCertFile:/c.pem,tlsKeyFile:/k.pem", ("/c.pem", "/k.pem")),
        ('{"tlsCertFile": "/c.pem", "tlsKeyFile": "/k.pem"}', ("/c.pem", "/k.pem")),
        ("", None),
    ],
)
def test_tls_plugin_when_given_any_known_form_then_names_the_files_and_sends_nothing(
    params: str, files: tuple[str, str] | None
) -> None:
    credentials = Credentials.from_plugin(TLS_PLUGIN, params)
    assert credentials is not None
    assert (credentials.method, credentials.certificate) == ("tls", files)
    assert (credentials.secret(), credentials.http_header()) == ("", None)


def test_credentials_when_printed_then_hide_the_secret() -> None:
    assert "abc" not in repr(Credentials.token("token:abc"))
