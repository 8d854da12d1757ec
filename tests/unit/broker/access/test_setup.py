"""Authentication and authorization made from settings; every meaningless setting is refused by name."""

from __future__ import annotations

import base64

import pytest

from interpulse.broker.access.setup import Access, build_access, own_access, warn_without_own_access
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.client.credentials import Credentials
from interpulse.model.errors import PreconditionFailed
from interpulse.model.permissions import Principal
from interpulse.serving.settings import words
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.tokens import SECRET

TOKENS = {
    "authenticationEnabled": "true",
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
}
KEY = {"tokenSecretKey": "data:;base64," + base64.b64encode(SECRET).decode()}


def access(settings: dict[str, str]) -> Access | None:
    store = MemoryMetadataStore()
    config = load_config(settings=[f"{key}={value}" for key, value in settings.items()]).config
    return build_access(config, Tenants(store), Namespaces(store, local_cluster="east"))


def test_access_when_authentication_is_off_then_is_none() -> None:
    assert access({}) is None
    assert access(KEY) is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"authorizationEnabled": "true"}, "needs authenticationEnabled=true"),
        ({"authenticationEnabled": "true"}, "needs authenticationProviders"),
    ],
)
def test_settings_when_invalid_then_refused_by_name(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PreconditionFailed, match=why):
        access(settings)


def test_settings_when_authorization_is_off_then_proxies_are_not_checked() -> None:
    built = access(TOKENS | KEY | {"proxyRoles": "proxy"})
    assert built is not None
    assert built.authorization is None
    assert built.principal("proxy", "somebody") == Principal("proxy")


def test_settings_when_authorization_is_on_then_its_roles_are_read() -> None:
    built = access(
        TOKENS
        | KEY
        | {
            "authorizationEnabled": "true",
            "superUserRoles": "root, other",
            "proxyRoles": "proxy",
            "replicatorRoles": "copier",
            "authenticationRefreshCheckSeconds": "7",
        }
    )
    assert built is not None
    assert built.authorization is not None
    assert built.authorization.is_super_user(Principal("other"))
    assert built.authorization.is_replicator(Principal("copier"))
    assert built.principal("proxy", "root") == Principal("proxy", "root")
    assert built.refresh_check_seconds == 7


def test_words_when_listed_with_blanks_and_commas_then_are_told_apart() -> None:
    assert words(" a, b ,,c") == ["a", "b", "c"]
    assert words("") == []


INSIDE_TLS = {
    "brokerServicePortTls": "0",
    "webServicePortTls": "0",
    "tlsCertificateFilePath": "/broker.pem",
    "tlsKeyFilePath": "/broker.key",
    "tlsTrustCertsFilePath": "/clients.pem",
    "brokerClientTlsEnabled": "true",
}
CERTIFICATE = {"brokerClientCertificateFilePath": "/own.pem", "brokerClientKeyFilePath": "/own.key"}
BY_ISSUER = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"
BY_CERTIFICATE = "org.apache.pulsar.client.impl.auth.AuthenticationTls"


@pytest.mark.parametrize(
    ("settings", "access"),
    [
        ({}, OwnAccess()),
        (
            {
                "brokerClientAuthenticationPlugin": "AuthenticationToken",
                "brokerClientAuthenticationParameters": "file:///admin.token",
            },
            OwnAccess(Credentials.token("file:///admin.token")),
        ),
        (
            {
                "brokerClientAuthenticationPlugin": "AuthenticationBasic",
                "brokerClientAuthenticationParameters": "me:word",
            },
            OwnAccess(Credentials.basic("me", "word")),
        ),
        (
            {
                "brokerClientAuthenticationPlugin": BY_ISSUER,
                "brokerClientAuthenticationParameters": '{"issuerUrl":"https://i","privateKey":"file:///k"}',
            },
            OwnAccess(Credentials.from_plugin(BY_ISSUER, '{"issuerUrl":"https://i","privateKey":"file:///k"}')),
        ),
        (INSIDE_TLS, OwnAccess(None, True, "/clients.pem")),
        (INSIDE_TLS | {"brokerClientTrustCertsFilePath": "/brokers.pem"}, OwnAccess(None, True, "/brokers.pem")),
        (
            INSIDE_TLS | CERTIFICATE,
            OwnAccess(None, True, "/clients.pem", "/own.pem", "/own.key"),
        ),
        (
            INSIDE_TLS
            | {
                "brokerClientAuthenticationPlugin": BY_CERTIFICATE,
                "brokerClientAuthenticationParameters": "tlsCertFile:/own.pem,tlsKeyFile:/own.key",
            },
            OwnAccess(None, True, "/clients.pem", "/own.pem", "/own.key"),
        ),
    ],
)
def test_own_access_when_read_from_settings_then_is_what_the_broker_shows_to_others(
    settings: dict[str, str], access: OwnAccess
) -> None:
    config = load_config(settings=[f"{key}={value}" for key, value in settings.items()]).config
    assert own_access(config) == access


def test_own_access_when_it_cannot_be_used_then_is_refused() -> None:
    settings = ["brokerClientAuthenticationPlugin=AuthenticationBasic", "brokerClientAuthenticationParameters=word"]
    with pytest.raises(PreconditionFailed, match="brokerClientAuthenticationParameters: basic authentication needs"):
        own_access(load_config(settings=settings).config)


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({}, False),
        (TOKENS | KEY, True),
        (TOKENS | KEY | {"anonymousUserRole": "anybody"}, False),
        (
            TOKENS
            | KEY
            | {"brokerClientAuthenticationPlugin": "token", "brokerClientAuthenticationParameters": "token:t"},
            False,
        ),
        (TOKENS | KEY | INSIDE_TLS | CERTIFICATE, False),
    ],
)
def test_own_access_when_missing_while_brokers_ask_for_it_then_is_warned_of(
    settings: dict[str, str], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_config(settings=[f"{key}={value}" for key, value in settings.items()]).config
    warn_without_own_access(config, own_access(config))
    assert ("brokerClientAuthenticationPlugin" in caplog.text) is warned
