"""Settings of a broker that takes tokens, passwords and tokens of an issuer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from passlib.hash import apr_md5_crypt

from tests.front_ends import access
from tests.support.issuer import AUDIENCE, Issuer

ADMIN_PASSWORD: Final = "eiderdown-and-kelp"
"""Of the user ``admin``."""
_PACKAGE: Final = "org.apache.pulsar.broker.authentication"


def settings_of_identities(directory: Path, issuer: Issuer) -> dict[str, str]:
    """As `tests.front_ends.access.settings`, with the other kinds of credentials beside tokens; the role ``admin`` may
    do everything."""
    users = directory / "users"
    users.write_text(f"admin:{apr_md5_crypt.hash(ADMIN_PASSWORD)}\n")
    tokens = access.settings(directory)
    others = f"{_PACKAGE}.AuthenticationProviderBasic,{_PACKAGE}.oidc.AuthenticationProviderOpenID"
    return tokens | {
        "authenticationProviders": f"{tokens['authenticationProviders']},{others}",
        "basicAuthConf": users.as_uri(),
        "openIDAllowedTokenIssuers": issuer.url,
        "openIDAllowedAudiences": AUDIENCE,
        "openIDRequireIssuersUseHttps": "false",
    }
