"""Authentication and authorization, built from the settings. An error names the key and the remedy."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from interpulse.authentication.authentication import Authentication
from interpulse.authentication.providers import build_authentication
from interpulse.broker.access.authorization import Authorization
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.own_access import OWN_CREDENTIALS, OwnAccess
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.client.credentials import Credentials
from interpulse.model.errors import PreconditionFailed
from interpulse.model.permissions import Principal
from interpulse.serving.listening import is_loopback
from interpulse.serving.settings import words

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Authentication and authorization for both front ends. It does not exist while authentication is off."""

    authentication: Authentication
    authorization: Authorization | None
    """The permission checks. None: every authenticated role may do everything."""
    refresh_check_seconds: int = 60
    """Seconds between two checks of credentials that expire; 0 = never."""
    original_authenticated: bool = False
    """True if a proxy must forward the credentials of its clients; their names are not enough."""
    metrics_authenticated: bool = False

    def principal(self, role: str, original: str | None, *, same_allowed: bool = False) -> Principal:
        """Return the principal of a call. Original roles are unchecked where every role may do everything."""
        if self.authorization is None:
            return Principal(role)
        return self.authorization.principal(role, original, same_allowed=same_allowed)

    def apply(self, config: BrokerConfig) -> None:
        """Apply the settings that change while the broker runs."""
        if self.authorization is not None:
            self.authorization.super_users = frozenset(words(config.super_user_roles))


def build_access(config: BrokerConfig, tenants: Tenants, namespaces: Namespaces) -> Access | None:
    """Return the access control, or None while authentication is off.

    Raise PreconditionFailed for unusable settings.
    """
    if not config.authentication_enabled:
        if config.authorization_enabled:
            raise PreconditionFailed(
                "authorizationEnabled=true needs authenticationEnabled=true: permissions are given to roles, and only "
                "authentication proves the role of a client"
            )
        if not is_loopback(config.bind_address):
            _logger.warning(
                "clients without credentials may do everything address=%s remedy=%s",
                config.bind_address,
                "authenticationEnabled=true and authorizationEnabled=true, or bindAddress=127.0.0.1",
            )
        return None
    authorization = Authorization(
        tenants,
        namespaces,
        super_users=words(config.super_user_roles),
        proxies=words(config.proxy_roles),
        replicators=words(config.replicator_roles),
        replicator_prefix=config.replicator_prefix,
    )
    return Access(
        build_authentication(config),
        authorization if config.authorization_enabled else None,
        refresh_check_seconds=config.authentication_refresh_check_seconds,
        original_authenticated=config.authenticate_original_auth_data,
        metrics_authenticated=config.authenticate_metrics_endpoint,
    )


def own_access(config: BrokerConfig) -> OwnAccess:
    """Return the credentials of the replication job and of this broker towards other brokers.

    Raises PreconditionFailed for unusable credentials.
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


def warn_without_own_access(config: BrokerConfig, own: OwnAccess) -> None:
    """Warn that a broker of a cluster has no credentials for the other brokers."""
    if config.authentication_enabled and not own.has_credentials and not config.anonymous_user_role:
        _logger.warning("brokers of this cluster refuse each other remedy=%s", OWN_CREDENTIALS)
