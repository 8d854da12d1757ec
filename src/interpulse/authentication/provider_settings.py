"""What settings say of the clients that a program knows; their keys are Pulsar's, the same for broker and proxy."""

from __future__ import annotations

from dataclasses import dataclass

from interpulse.serving.settings import setting

__all__ = ["ProviderSettings"]


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Those of a program that checks credentials, which adds its own."""

    tls_trust_certs_file_path: str = setting("", "Authorities of clients (PEM).")
    tls_cert_identity_source: str = setting(
        "CN",
        "Name in the certificate of a client that makes its role: the common name (CN), the whole subject (DN), or the "
        "first alternative name of a type.",
        choices=("CN", "DN", "SAN:URI", "SAN:DNS", "SAN:EMAIL"),
    )
    tls_auth_principal_mapping_rules: str = setting(
        "",
        "Rules that make the role of that name, as RULE:pattern/replacement/[LU] or DEFAULT with commas between them; "
        "empty = the name is the role.",
    )
    authentication_providers: str = setting(
        "", "Authentication providers, as Java class names with commas between them; see the guide on security."
    )
    anonymous_user_role: str = setting("", "Role of clients without credentials; empty = they are refused.")
    token_secret_key: str = setting(
        "", "Key that signs and verifies tokens: file:..., data:;base64,... or base64.", secret=True
    )
    token_public_key: str = setting("", "Key that verifies tokens signed with a private key; given in the same ways.")
    token_public_alg: str = setting("", "Signature algorithm tokenPublicKey is for; empty = RS256.")
    token_validation_keys_jwks: str = setting(
        "",
        "Keys that verify tokens, as a JSON Web Key Set, beside the key above: file:..., data:;base64,... or base64.",
        secret=True,
    )
    token_validation_keys_refresh_seconds: int = setting(
        0, "How often the file of this set is looked at for changes, in seconds; 0 = never.", least=0
    )
    token_require_kid: bool = setting(
        False,
        "Tokens have to name a key of this set (kid); otherwise those that name none of it are tried with all keys.",
    )
    token_auth_claim: str = setting("", "Claim of a token that holds the role; empty = sub.")
    token_audience_claim: str = setting("", "Claim of a token that has to hold tokenAudience; empty = none.")
    token_audience: str = setting("", "Audience of the tokens that are accepted.")
    token_allowed_clock_skew_seconds: int = setting(
        0, "How long a token stays valid after it has expired, in seconds.", least=0
    )
    basic_auth_conf: str = setting(
        "",
        "Users and the hashes of their passwords, as htpasswd writes them: file:..., data:;base64,... or base64.",
        secret=True,
    )
    open_id_allowed_token_issuers: str = setting(
        "",
        "Issuers of OpenID Connect whose tokens are accepted, as https:// addresses with commas between them.",
        key="openIDAllowedTokenIssuers",
    )
    open_id_allowed_audiences: str = setting(
        "", "Audiences of such tokens; a token has to name one.", key="openIDAllowedAudiences"
    )
    open_id_role_claim: str = setting("sub", "Claim of such a token that holds the role.", key="openIDRoleClaim")
    open_id_accepted_time_leeway_seconds: int = setting(
        0,
        "By how much the clocks of issuers may differ from the one here, in seconds.",
        least=0,
        key="openIDAcceptedTimeLeewaySeconds",
    )
    open_id_token_issuer_trust_certs_file_path: str = setting(
        "",
        "Certificates that those of issuers are checked against (PEM); empty = those of the system.",
        key="openIDTokenIssuerTrustCertsFilePath",
    )
    open_id_require_issuers_use_https: bool = setting(
        True, "Issuers are called by https:// alone.", key="openIDRequireIssuersUseHttps"
    )
    open_id_cache_refresh_after_write_seconds: int = setting(
        18 * 3600,
        "After how long the keys of an issuer are fetched anew, in seconds.",
        least=1,
        key="openIDCacheRefreshAfterWriteSeconds",
    )
    open_id_cache_expiration_seconds: int = setting(
        24 * 3600,
        "How long keys of an issuer are used that cannot be fetched anew, in seconds.",
        least=1,
        key="openIDCacheExpirationSeconds",
    )
    open_id_key_id_cache_miss_refresh_seconds: int = setting(
        300,
        "How often keys are fetched anew because a token names one that is not among them, in seconds.",
        least=1,
        key="openIDKeyIdCacheMissRefreshSeconds",
    )
    open_id_http_connection_timeout_millis: int = setting(
        10_000,
        "How long connecting to an issuer may take, in milliseconds.",
        least=1,
        key="openIDHttpConnectionTimeoutMillis",
    )
    open_id_http_read_timeout_millis: int = setting(
        10_000,
        "How long the answer of an issuer may take, in milliseconds.",
        least=1,
        key="openIDHttpReadTimeoutMillis",
    )
    authentication_refresh_check_seconds: int = setting(
        60,
        "How often clients whose credentials have ended are asked for new ones, in seconds; 0 = never.",
        least=0,
    )
