"""Authentication and authorization, built from the settings; unusable ones are refused with key and remedy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from interpulse.broker.access.authentication import Authentication, Provider
from interpulse.broker.access.authorization import Authorization
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.client.credentials import Credentials
from interpulse.model.errors import PreconditionFailed, PulsarError
from interpulse.model.permissions import Principal
from interpulse.serving.listening import is_loopback
from interpulse.serving.settings import words

if TYPE_CHECKING:
    from interpulse.broker.access.signing_keys import PublicKey

__all__ = ["Access", "build_access", "own_access"]

_logger = logging.getLogger(__name__)

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Access:
    """Authentication and authorization, as both front ends ask for them. There is none while authentication is off."""

    authentication: Authentication
    authorization: Authorization | None
    """None: every authenticated role may do everything."""
    refresh_check_seconds: int = 60
    """How often a connection whose credentials end is looked at; 0 = never."""
    original_authenticated: bool = False
    """A proxy has to bring the credentials of its clients, their names are not enough."""
    metrics_authenticated: bool = False

    def principal(self, role: str, original: str | None, *, same_allowed: bool = False) -> Principal:
        """The principal of a call. Original roles are not checked where every role may do everything."""
        if self.authorization is None:
            return Principal(role)
        return self.authorization.principal(role, original, same_allowed=same_allowed)


def build_access(config: BrokerConfig, tenants: Tenants, namespaces: Namespaces) -> Access | None:
    """None while authentication is off. Raises PreconditionFailed for settings that cannot be used."""
    if not config.authentication_enabled:
        if config.authorization_enabled:
            raise PreconditionFailed(
                "authorizationEnabled=true needs authenticationEnabled=true: permissions are given to roles, and only "
                "authentication tells the role of a client"
            )
        if not is_loopback(config.bind_address):
            _logger.warning(
                "clients without credentials may do everything address=%s remedy=%s",
                config.bind_address,
                "authenticationEnabled=true and authorizationEnabled=true, or bindAddress=127.0.0.1",
            )
        return None
    authentication = Authentication(_providers(config), anonymous_role=config.anonymous_user_role)
    return Access(
        authentication,
        _authorization(config, tenants, namespaces) if config.authorization_enabled else None,
        refresh_check_seconds=config.authentication_refresh_check_seconds,
        original_authenticated=config.authenticate_original_auth_data,
        metrics_authenticated=config.authenticate_metrics_endpoint,
    )


def own_access(config: BrokerConfig) -> OwnAccess:
    """What the replication job, and this broker towards others, authenticate with.

    Raises PreconditionFailed for credentials that cannot be used.
    """
    try:
        credentials = Credentials.from_plugin(
            config.broker_client_authentication_plugin, config.broker_client_authentication_parameters
        )
    except ValueError as error:
        raise PreconditionFailed(f"brokerClientAuthenticationParameters: {error}") from error
    certificate = config.broker_client_certificate_file_path, config.broker_client_key_file_path
    if credentials is not None and credentials.method == "tls":
        certificate, credentials = credentials.certificate or certificate, None
    return OwnAccess(
        credentials,
        tls_preferred=config.broker_client_tls_enabled,
        trust_certs_path=config.broker_client_trust_certs_file_path or config.tls_trust_certs_file_path or None,
        certificate_path=certificate[0] or None,
        key_path=certificate[1] or None,
    )


def _authorization(config: BrokerConfig, tenants: Tenants, namespaces: Namespaces) -> Authorization:
    return Authorization(
        tenants,
        namespaces,
        super_users=words(config.super_user_roles),
        proxies=words(config.proxy_roles),
        replicators=words(config.replicator_roles),
        replicator_prefix=config.replicator_prefix,
    )


def _providers(config: BrokerConfig) -> list[Provider]:
    names = words(config.authentication_providers)
    if not names:
        raise PreconditionFailed(
            "authenticationEnabled=true needs authenticationProviders, "
            "for example org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        )
    return [_provider(name, config) for name in dict.fromkeys(names)]


def _provider(name: str, config: BrokerConfig) -> Provider:
    """Java class names are known by their last part."""
    simple = name.rpartition(".")[2]
    make = _MAKERS.get(simple)
    if make is None:
        raise PreconditionFailed(
            f"authenticationProviders={name} is not offered by this broker: it is not known; offered: "
            f"{', '.join(_MAKERS)}"
        )
    return make(config)


def _token_provider(config: BrokerConfig) -> Provider:
    from interpulse.broker.access.tokens import TokenProvider, TokenVerifier  # a broker without tokens starts without

    if config.token_audience_claim and not config.token_audience:
        raise PreconditionFailed(
            f"tokenAudienceClaim={config.token_audience_claim} needs tokenAudience: what tokens for us name there"
        )
    return TokenProvider(
        TokenVerifier(
            _token_key(config),
            role_claim=config.token_auth_claim or "sub",
            audience_claim=config.token_audience_claim,
            audience=config.token_audience,
            clock_skew_seconds=config.token_allowed_clock_skew_seconds,
        )
    )


def _certificate_provider(config: BrokerConfig) -> Provider:
    from interpulse.broker.access.certificates import CertificateProvider

    if not config.tls_trust_certs_file_path:
        raise PreconditionFailed(
            "AuthenticationProviderTls needs tlsTrustCertsFilePath, the authorities that sign the certificates of "
            "clients, and brokerServicePortTls and webServicePortTls, where clients show them"
        )
    return CertificateProvider()


def _password_provider(config: BrokerConfig) -> Provider:
    from interpulse.broker.access.passwords import PasswordFile, PasswordProvider, UnusablePasswords

    if not config.basic_auth_conf:
        raise PreconditionFailed(
            "AuthenticationProviderBasic needs basicAuthConf, the users as `htpasswd` writes them: file:///path"
        )
    try:
        users = _usable("basicAuthConf", lambda: PasswordFile(config.basic_auth_conf))
    except UnusablePasswords as error:
        raise PreconditionFailed(f"basicAuthConf cannot be used: {error}") from None
    return PasswordProvider(users.users)


def _openid_provider(config: BrokerConfig) -> Provider:
    from interpulse.broker.access.issuer_keys import IssuerKeys
    from interpulse.broker.access.openid import OpenIdProvider
    from interpulse.client.tls import TlsOptions
    from interpulse.client.transport.json_documents import JsonDocuments

    issuers, audiences = words(config.open_id_allowed_token_issuers), words(config.open_id_allowed_audiences)
    if not issuers or not audiences:
        raise PreconditionFailed(
            "AuthenticationProviderOpenID needs openIDAllowedTokenIssuers, whose tokens are accepted, and "
            "openIDAllowedAudiences, what they have to be for"
        )
    insecure = [each for each in issuers if not each.startswith("https://")]
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
    keys = {
        issuer: IssuerKeys(
            issuer,
            documents,
            https_required=config.open_id_require_issuers_use_https,
            refresh_seconds=config.open_id_cache_refresh_after_write_seconds,
            expiry_seconds=config.open_id_cache_expiration_seconds,
            missing_seconds=config.open_id_key_id_cache_miss_refresh_seconds,
        )
        for issuer in issuers
    }
    return OpenIdProvider(
        keys,
        audiences,
        role_claim=config.open_id_role_claim or "sub",
        leeway_seconds=config.open_id_accepted_time_leeway_seconds,
    )


def _token_key(config: BrokerConfig) -> bytes | PublicKey:
    """The secret key wins over the public one, as in Pulsar. Errors never show what was given: it may be the key."""
    from interpulse.broker.access.signing_keys import public_key, read_key, secret_key, signatures

    if config.token_secret_key:
        return _usable("tokenSecretKey", lambda: secret_key(read_key(config.token_secret_key)))
    if not config.token_public_key:
        raise PreconditionFailed("AuthenticationProviderToken needs tokenSecretKey or tokenPublicKey")
    key = _usable("tokenPublicKey", lambda: public_key(read_key(config.token_public_key)))
    algorithm = config.token_public_alg or "RS256"
    if algorithm not in signatures(key):
        raise PreconditionFailed(
            f"tokenPublicAlg={algorithm} does not fit tokenPublicKey, which is for {', '.join(signatures(key))}"
        )
    return key


def _usable(setting: str, read: Callable[[], Key]) -> Key:
    from interpulse.broker.access.signing_keys import UnusableKey

    try:
        return read()
    except UnusableKey as error:
        raise PreconditionFailed(f"{setting} cannot be used: {error}") from None


_MAKERS: Final[Mapping[str, Callable[[BrokerConfig], Provider]]] = {
    "AuthenticationProviderToken": _token_provider,
    "AuthenticationProviderTls": _certificate_provider,
    "AuthenticationProviderBasic": _password_provider,
    "AuthenticationProviderOpenID": _openid_provider,
}
