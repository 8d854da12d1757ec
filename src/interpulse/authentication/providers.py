"""Authentication built from settings. Unusable settings are refused with key and remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.authentication.authentication import AccessMeter, Authentication, Provider
from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.model.errors import PreconditionFailed, PulsarError
from interpulse.serving.settings import words

if TYPE_CHECKING:
    from interpulse.authentication.signing_keys import PublicKey
    from interpulse.authentication.tokens import KeySet

Key = TypeVar("Key")


def build_authentication(config: ProviderSettings) -> Authentication:
    """Return authentication by all providers that the settings name. Raise PreconditionFailed for unusable settings."""
    meter = AccessMeter()
    names = words(config.authentication_providers)
    if not names:
        raise PreconditionFailed(
            "authenticationEnabled=true needs authenticationProviders, "
            "for example org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        )
    providers = []
    for name in dict.fromkeys(names):
        make = _MAKERS.get(name.rpartition(".")[2])  # the last part of a Java class name
        if make is None:
            raise PreconditionFailed(
                f"authenticationProviders={name} is not offered: it is not known; offered: {', '.join(_MAKERS)}"
            )
        providers.append(make(config, meter))
    return Authentication(providers, anonymous_role=config.anonymous_user_role, meter=meter)


def _token_provider(config: ProviderSettings, meter: AccessMeter) -> Provider:
    from interpulse.authentication.tokens import TokenProvider  # loaded only where they are needed

    if config.token_audience_claim and not config.token_audience:
        raise PreconditionFailed(
            f"tokenAudienceClaim={config.token_audience_claim} needs tokenAudience: what tokens for us name there"
        )
    key, key_set = _token_key(config), _token_keys(config)
    if key is None and key_set is None:
        raise PreconditionFailed(
            "AuthenticationProviderToken needs tokenSecretKey, tokenPublicKey or tokenValidationKeysJwks"
        )
    meter.token_keys = key_set
    return TokenProvider(
        key,
        key_set=key_set,
        key_id_required=config.token_require_kid,
        role_claim=config.token_auth_claim or "sub",
        audience_claim=config.token_audience_claim,
        audience=config.token_audience,
        clock_skew_seconds=config.token_allowed_clock_skew_seconds,
    )


def _certificate_provider(config: ProviderSettings, meter: AccessMeter) -> Provider:
    from interpulse.authentication.certificates import CertificateProvider, PrincipalMapping, UnusableRules

    if not config.tls_trust_certs_file_path:
        raise PreconditionFailed(
            "AuthenticationProviderTls needs tlsTrustCertsFilePath, the authorities that sign the certificates of "
            "clients, and ports inside TLS, where clients show them"
        )
    try:
        mapping = PrincipalMapping(config.tls_auth_principal_mapping_rules)
    except UnusableRules as error:
        raise PreconditionFailed(f"tlsAuthPrincipalMappingRules: {error}") from None
    return CertificateProvider(config.tls_cert_identity_source, mapping)


def _password_provider(config: ProviderSettings, meter: AccessMeter) -> Provider:
    from interpulse.authentication.passwords import PasswordFile, PasswordProvider, UnusablePasswords

    if not config.basic_auth_conf:
        raise PreconditionFailed(
            "AuthenticationProviderBasic needs basicAuthConf, the users as `htpasswd` writes them: file:///path"
        )
    try:
        users = _usable("basicAuthConf", lambda: PasswordFile(config.basic_auth_conf))
    except UnusablePasswords as error:
        raise PreconditionFailed(f"basicAuthConf cannot be used: {error}") from None
    return PasswordProvider(users.users)


def _openid_provider(config: ProviderSettings, meter: AccessMeter) -> Provider:
    from interpulse.authentication.openid import IssuerKeys, OpenIdProvider
    from interpulse.client.tls import TlsOptions
    from interpulse.client.transport.json_documents import JsonDocuments

    issuers, audiences = words(config.open_id_allowed_token_issuers), words(config.open_id_allowed_audiences)
    if not issuers or not audiences:
        raise PreconditionFailed(
            "AuthenticationProviderOpenID needs openIDAllowedTokenIssuers, whose tokens are accepted, and "
            "openIDAllowedAudiences, what they have to be for"
        )
    insecure = [issuer for issuer in issuers if not issuer.startswith("https://")]
    if config.open_id_require_issuers_use_https and insecure:
        raise PreconditionFailed(
            f"openIDAllowedTokenIssuers={','.join(insecure)} does not begin with https://, and "
            "openIDRequireIssuersUseHttps=true asks for it"
        )
    trusted = TlsOptions(config.open_id_token_issuer_trust_certs_file_path or None)
    try:
        trusted.context()
    except PulsarError as error:
        raise PreconditionFailed(f"openIDTokenIssuerTrustCertsFilePath: {error}") from error
    documents = JsonDocuments(
        tls=trusted,
        connect_timeout_ms=config.open_id_http_connection_timeout_millis,
        timeout_ms=config.open_id_http_connection_timeout_millis + config.open_id_http_read_timeout_millis,
    )
    keys = {issuer: IssuerKeys(issuer, documents, config) for issuer in issuers}
    return OpenIdProvider(
        keys,
        audiences,
        role_claim=config.open_id_role_claim or "sub",
        leeway_seconds=config.open_id_accepted_time_leeway_seconds,
    )


def _token_keys(config: ProviderSettings) -> KeySet | None:
    from interpulse.authentication.tokens import KeySet

    if not config.token_validation_keys_jwks:
        if config.token_require_kid:
            raise PreconditionFailed(
                "tokenRequireKid=true needs tokenValidationKeysJwks, the set of keys that tokens name"
            )
        return None
    seconds = config.token_validation_keys_refresh_seconds
    return _usable("tokenValidationKeysJwks", lambda: KeySet(config.token_validation_keys_jwks, seconds))


def _token_key(config: ProviderSettings) -> bytes | PublicKey | None:
    """Return the key; the secret one wins, as in Pulsar. Errors never show the setting: it may be the key."""
    from interpulse.authentication.signing_keys import public_key, read_key, secret_key, signatures

    if config.token_secret_key:
        return _usable("tokenSecretKey", lambda: secret_key(read_key(config.token_secret_key)))
    if not config.token_public_key:
        return None
    key = _usable("tokenPublicKey", lambda: public_key(read_key(config.token_public_key)))
    algorithm = config.token_public_alg or "RS256"
    if algorithm not in signatures(key):
        raise PreconditionFailed(
            f"tokenPublicAlg={algorithm} does not fit tokenPublicKey, which is for {', '.join(signatures(key))}"
        )
    return key


def _usable(setting: str, read: Callable[[], Key]) -> Key:
    from interpulse.authentication.signing_keys import UnusableKey

    try:
        return read()
    except UnusableKey as error:
        raise PreconditionFailed(f"{setting} cannot be used: {error}") from None


_MAKERS: Final[Mapping[str, Callable[[ProviderSettings, AccessMeter], Provider]]] = {
    "AuthenticationProviderToken": _token_provider,
    "AuthenticationProviderTls": _certificate_provider,
    "AuthenticationProviderBasic": _password_provider,
    "AuthenticationProviderOpenID": _openid_provider,
}
