"""Authentication made from settings, the same for broker and proxy; every meaningless setting is refused by name."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.authentication.providers import build_authentication
from interpulse.authentication.tokens import create_token
from interpulse.broker.config import config_sources
from interpulse.model.errors import PreconditionFailed
from interpulse.proxy import proxy_config
from interpulse.serving.settings import ConfigError
from tests.support.tokens import SECRET

CURVE = ec.generate_private_key(ec.SECP256R1())
PUBLIC = base64.b64encode(CURVE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
TOKENS = {"authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"}
PASSWORDS = {"authenticationProviders": "AuthenticationProviderBasic"}
OPENID = {
    "authenticationProviders": "AuthenticationProviderOpenID",
    "openIDAllowedTokenIssuers": "https://issuer",
    "openIDAllowedAudiences": "pulsar",
}
KEY = {"tokenSecretKey": "data:;base64," + base64.b64encode(SECRET).decode()}
BROKERS = {"brokerServiceURL": "pulsar://b:6650", "brokerWebServiceURL": "http://b:8080"}


def of_broker(settings: dict[str, str]) -> ProviderSettings:
    return config_sources.load_config(settings=[f"{key}={value}" for key, value in settings.items()]).config


def of_proxy(settings: dict[str, str]) -> ProviderSettings:
    given = settings | BROKERS
    return proxy_config.load_config(settings=[f"{key}={value}" for key, value in given.items()]).config


Program = Callable[[dict[str, str]], ProviderSettings]


@pytest.fixture(params=[of_broker, of_proxy], ids=["broker", "proxy"])
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "needs authenticationProviders"),
        ({"authenticationProviders": "com.example.Mine"}, "com.example.Mine is not offered: it is not known"),
        ({"authenticationProviders": "AuthenticationProviderBasic"}, "needs basicAuthConf"),
        (PASSWORDS | {"basicAuthConf": "/not/there"}, "basicAuthConf cannot be used: it is neither file"),
        (PASSWORDS | {"basicAuthConf": "data:,bob"}, "basicAuthConf cannot be used: line 1 is not USER:HASH"),
        (PASSWORDS | {"basicAuthConf": "data:,bob:plain"}, "line 1: the hash of user bob is none of apr1"),
        (OPENID | {"openIDTokenIssuerTrustCertsFilePath": "/no.pem"}, "TrustCertsFilePath: .*/no.pem"),
        (OPENID | {"openIDAllowedAudiences": ""}, "AuthenticationProviderOpenID needs openIDAllowed"),
        (OPENID | {"openIDAllowedTokenIssuers": ""}, "AuthenticationProviderOpenID needs openIDAllowed"),
        (OPENID | {"openIDAllowedTokenIssuers": "http://issuer"}, "http://issuer does not begin with https"),
        (TOKENS, "needs tokenSecretKey, tokenPublicKey or tokenValidationKeysJwks"),
        (
            TOKENS | {"tokenValidationKeysJwks": "data:,{}"},
            "tokenValidationKeysJwks cannot be used: it is not a JSON Web",
        ),
        (
            TOKENS | {"tokenValidationKeysJwks": "file:///no"},
            "tokenValidationKeysJwks cannot be used: /no cannot be read",
        ),
        (TOKENS | KEY | {"tokenRequireKid": "true"}, "tokenRequireKid=true needs tokenValidationKeysJwks"),
        (TOKENS | {"tokenSecretKey": "file:///not/there"}, "tokenSecretKey cannot be used: /not/there cannot be read"),
        (TOKENS | {"tokenSecretKey": "c2hvcnQ="}, "at least 32 bytes"),
        (TOKENS | {"tokenPublicKey": "c2hvcnQ="}, "tokenPublicKey cannot be used: .*DER"),
        (TOKENS | {"tokenPublicKey": PUBLIC}, "tokenPublicAlg=RS256 does not fit tokenPublicKey, which is for ES256"),
        (TOKENS | KEY | {"tokenAudienceClaim": "aud"}, "needs tokenAudience"),
        ({"authenticationProviders": "AuthenticationProviderTls"}, "AuthenticationProviderTls needs tlsTrust"),
    ],
)
def test_settings_when_invalid_then_refused_by_name(program: Program, settings: dict[str, str], why: str) -> None:
    with pytest.raises(PreconditionFailed, match=why):
        build_authentication(program(settings))


def test_settings_when_a_rule_for_certificates_cannot_be_read_then_is_refused() -> None:
    settings = ProviderSettings(
        tls_trust_certs_file_path="/authority.pem",
        authentication_providers="AuthenticationProviderTls",
        tls_auth_principal_mapping_rules="DEFAULT,RULE:(/a/",
    )
    with pytest.raises(PreconditionFailed, match=r"tlsAuthPrincipalMappingRules: the pattern '\(' is none of RE2"):
        build_authentication(settings)


@pytest.mark.parametrize("source", ["cn", "SAN", "SAN:IP"])
def test_settings_when_the_role_source_is_unknown_then_choices_are_named(program: Program, source: str) -> None:
    with pytest.raises(ConfigError, match=f"tlsCertIdentitySource={source}: must be one of CN, DN, SAN:URI"):
        program({"tlsCertIdentitySource": source})


async def test_settings_when_a_public_key_is_given_then_its_tokens_are_accepted(
    program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "public.key"
    path.write_bytes(base64.b64decode(PUBLIC))
    built = build_authentication(program(TOKENS | {"tokenPublicKey": path.as_uri(), "tokenPublicAlg": "ES256"}))
    identity = await built.authenticate("token", create_token(CURVE, "app", signature="ES256").encode())
    assert identity.role == "app"


async def test_settings_when_anonymous_clients_have_a_role_then_get_it(program: Program) -> None:
    built = build_authentication(program(TOKENS | KEY | {"anonymousUserRole": "guest"}))
    assert (await built.authenticate("none", b"")).role == "guest"
