"""Settings of a program that serves clients. The keys are Pulsar's, the same for broker and proxy."""

from __future__ import annotations

from dataclasses import dataclass

from interpulse.serving.settings import setting


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The settings of a program that checks clients, to which it adds its own."""

    bind_address: str = setting("127.0.0.1", "Address all ports listen on.")
    tls_certificate_file_path: str = setting(
        "", "Certificate of the ports inside TLS (PEM, with those that lead to its authority)."
    )
    tls_key_file_path: str = setting("", "Private key of tlsCertificateFilePath (PEM, without a password).")
    tls_trust_certs_file_path: str = setting(
        "",
        "Authorities of clients (PEM), one of which must have signed a client's certificate. Empty = clients are not "
        "asked for one.",
    )
    tls_require_trusted_client_cert_on_connect: bool = setting(
        False, "Clients have to show a certificate, on every port inside TLS."
    )
    tls_cert_refresh_check_duration_sec: int = setting(
        300, "Seconds between two checks of the certificate files for changes; 0 = one second."
    )
    tls_cert_identity_source: str = setting(
        "CN",
        "Name in the certificate of a client that makes its role: the common name (CN), the whole subject (DN), or the "
        "first alternative name of a type.",
        choices=("CN", "DN", "SAN:URI", "SAN:DNS", "SAN:EMAIL"),
    )
    tls_auth_principal_mapping_rules: str = setting(
        "",
        "Rules that derive the role from that name, as comma-separated RULE:pattern/replacement/[LU] or DEFAULT; "
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
        0, "Interval at which the file of this set is checked for changes, in seconds; 0 = never."
    )
    token_require_kid: bool = setting(
        False, "Tokens must name a key of this set (kid); otherwise tokens that name none are tried with all keys."
    )
    token_auth_claim: str = setting("", "Claim of a token that holds the role; empty = sub.")
    token_audience_claim: str = setting("", "Claim of a token that must contain tokenAudience; empty = none.")
    token_audience: str = setting("", "Audience of accepted tokens.")
    token_allowed_clock_skew_seconds: int = setting(0, "Time for which an expired token stays valid, in seconds.")
    basic_auth_conf: str = setting(
        "",
        "Users and the hashes of their passwords, as htpasswd writes them: file:..., data:;base64,... or base64.",
        secret=True,
    )
    open_id_allowed_token_issuers: str = setting(
        "", "Issuers of OpenID Connect whose tokens are accepted, as https:// addresses with commas between them."
    )
    open_id_allowed_audiences: str = setting("", "Audiences of such tokens; a token must name one.")
    open_id_role_claim: str = setting("sub", "Claim of such a token that holds the role.")
    open_id_accepted_time_leeway_seconds: int = setting(
        0, "Accepted difference of the issuers' clocks from the local one, in seconds."
    )
    open_id_token_issuer_trust_certs_file_path: str = setting(
        "", "Authorities for the certificates of issuers (PEM); empty = those of the system."
    )
    open_id_require_issuers_use_https: bool = setting(True, "Issuers are called only by https://.")
    open_id_cache_refresh_after_write_seconds: int = setting(
        18 * 3600, "Age at which the keys of an issuer are fetched again, in seconds.", least=1
    )
    open_id_cache_expiration_seconds: int = setting(
        24 * 3600, "Age up to which keys are used if the issuer cannot be reached, in seconds.", least=1
    )
    open_id_key_id_cache_miss_refresh_seconds: int = setting(
        300, "Interval at which keys are fetched again because a token names an unknown one, in seconds.", least=1
    )
    open_id_http_connection_timeout_millis: int = setting(
        10_000, "Longest wait for a connection to an issuer, in milliseconds.", least=1
    )
    open_id_http_read_timeout_millis: int = setting(
        10_000, "Longest wait for the answer of an issuer, in milliseconds.", least=1
    )
    authentication_refresh_check_seconds: int = setting(
        60, "Interval at which clients with expired credentials are asked for new ones, in seconds; 0 = never."
    )
