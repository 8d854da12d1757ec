"""Authentication and authorization made from settings; every meaningless setting is refused by name."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from interpulse.broker.access.setup import Access, build_access, own_access
from interpulse.broker.access.tokens import create_token
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.client.credentials import Credentials
from interpulse.model.errors import PreconditionFailed
from interpulse.model.permissions import Principal
from interpulse.serving.settings import words
from interpulse.storage.memory import MemoryMetadataStore
from tests.support.tokens import SECRET

CURVE = ec.generate_private_key(ec.SECP256R1())
PUBLIC = base64.b64encode(CURVE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
TOKENS = {
    "authenticationEnabled": "true",
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
}
PASSWORDS = {"authenticationProviders": "AuthenticationProviderBasic"}
OPENID = {
    "authenticationProviders": "AuthenticationProviderOpenID",
    "openIDAllowedTokenIssuers": "https://issuer",
    "openIDAllowedAudiences": "pulsar",
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
        (
            TOKENS | {"authenticationProviders": "com.example.Mine"},
            "com.example.Mine is not offered .* it is not known",
        ),
        (TOKENS | {"authenticationProviders": "AuthenticationProviderBasic"}, "needs basicAuthConf"),
        (TOKENS | PASSWORDS | {"basicAuthConf": "/not/there"}, "basicAuthConf cannot be used: it is neither file"),
        (TOKENS | PASSWORDS | {"basicAuthConf": "data:,bob"}, "basicAuthConf cannot be used: line 1 is not USER:HASH"),
        (TOKENS | PASSWORDS | {"basicAuthConf": "data:,bob:plain"}, "line 1: the hash of user bob is none of apr1"),
        (TOKENS | OPENID | {"openIDTokenIssuerTrustCertsFilePath": "/no.pem"}, "TrustCertsFilePath: .*/no.pem"),
        (TOKENS | OPENID | {"openIDAllowedAudiences": ""}, "AuthenticationProviderOpenID needs openIDAllowed"),
        (TOKENS | OPENID | {"openIDAllowedTokenIssuers": ""}, "AuthenticationProviderOpenID needs openIDAllowed"),
        (TOKENS | OPENID | {"openIDAllowedTokenIssuers": "http://issuer"}, "http://issuer does not begin with https"),
        (TOKENS, "needs tokenSecretKey or tokenPublicKey"),
        (TOKENS | {"tokenSecretKey": "file:///not/there"}, "tokenSecretKey cannot be used: /not/there cannot be read"),
        (TOKENS | {"tokenSecretKey": "c2hvcnQ="}, "at least 32 bytes"),
        (TOKENS | {"tokenPublicKey": "c2hvcnQ="}, "tokenPublicKey cannot be used: .*DER"),
        (TOKENS | {"tokenPublicKey": PUBLIC}, "tokenPublicAlg=RS256 does not fit tokenPublicKey, which is for ES256"),
        (TOKENS | KEY | {"tokenAudienceClaim": "aud"}, "needs tokenAudience"),
        (TOKENS | {"authenticationProviders": "AuthenticationProviderTls"}, "AuthenticationProviderTls needs tlsTrust"),
    ],
)
def test_settings_when_they_cannot_be_meant_then_are_refused_by_name(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PreconditionFailed, match=why):
        access(settings)


async def test_settings_when_a_public_key_is_given_then_its_tokens_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "public.key"
    path.write_bytes(base64.b64decode(PUBLIC))
    built = access(TOKENS | {"tokenPublicKey": path.as_uri(), "tokenPublicAlg": "ES256"})
    assert built is not None
    token = create_token(CURVE, "app", signature="ES256")
    identity = await built.authentication.authenticate("token", token.encode())
    assert identity.role == "app"


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
            INSIDE_TLS | {"brokerClientCertificateFilePath": "/own.pem", "brokerClientKeyFilePath": "/own.key"},
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
