"""The parameters of OAuth 2, in both spellings of Pulsar's clients, and the key file that they name."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from interpulse.client.client_grant import ClientGrant
from interpulse.client.credentials import Credentials
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
