"""What settings say of the clients that a program knows; their keys are Pulsar's, the same for broker and proxy."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ProviderSettings"]


class ProviderSettings(Protocol):
    """Those of a program that checks credentials."""

    @property
    def anonymous_user_role(self) -> str: ...

    @property
    def authentication_providers(self) -> str: ...

    @property
    def basic_auth_conf(self) -> str: ...

    @property
    def open_id_accepted_time_leeway_seconds(self) -> int: ...

    @property
    def open_id_allowed_audiences(self) -> str: ...

    @property
    def open_id_allowed_token_issuers(self) -> str: ...

    @property
    def open_id_cache_expiration_seconds(self) -> int: ...

    @property
    def open_id_cache_refresh_after_write_seconds(self) -> int: ...

    @property
    def open_id_http_connection_timeout_millis(self) -> int: ...

    @property
    def open_id_http_read_timeout_millis(self) -> int: ...

    @property
    def open_id_key_id_cache_miss_refresh_seconds(self) -> int: ...

    @property
    def open_id_require_issuers_use_https(self) -> bool: ...

    @property
    def open_id_role_claim(self) -> str: ...

    @property
    def open_id_token_issuer_trust_certs_file_path(self) -> str: ...

    @property
    def tls_trust_certs_file_path(self) -> str: ...

    @property
    def token_allowed_clock_skew_seconds(self) -> int: ...

    @property
    def token_audience(self) -> str: ...

    @property
    def token_audience_claim(self) -> str: ...

    @property
    def token_auth_claim(self) -> str: ...

    @property
    def token_public_alg(self) -> str: ...

    @property
    def token_public_key(self) -> str: ...

    @property
    def token_secret_key(self) -> str: ...
