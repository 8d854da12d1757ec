"""Where a cluster is and how to identify oneself: from flags, the environment and ``client.conf``.

A flag wins over an environment variable, that over the file named by ``PULSAR_CLIENT_CONF``, that over the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from interpulse.client.auth import Credentials
    from interpulse.client.tls import TlsOptions

__all__ = ["ConnectionSettings", "read_client_conf"]

_CONF_VARIABLE = "PULSAR_CLIENT_CONF"
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What every command that talks to a cluster needs to know."""

    admin_url: str
    service_url: str
    auth_plugin: str | None
    auth_params: str | None
    request_timeout_ms: int
    tls_trust_certs_path: str | None
    tls_insecure_allowed: bool
    tls_hostname_verified: bool
    tls_certificate_path: str | None
    tls_key_path: str | None

    @classmethod
    def resolve(
        cls,
        flags: Mapping[str, str | bool | int | None],
        environment: Mapping[str, str] = os.environ,
    ) -> ConnectionSettings:
        """Put the sources together; ``flags`` holds Pulsar's key names, None where a flag was not given.

        Raises click.UsageError for a configuration file that cannot be read.
        """
        conf = read_client_conf(environment.get(_CONF_VARIABLE))

        def text(key: str, default: str | None = None) -> str | None:
            for value in (flags.get(key), environment.get(key), conf.get(key)):
                if value not in (None, ""):
                    return str(value)
            return default

        def truth(key: str, default: bool) -> bool:
            value = text(key)
            if value is None:
                return default
            if value.lower() not in _TRUTHS:
                raise click.UsageError(f"{key} must be true or false, not {value!r}")
            return _TRUTHS[value.lower()]

        return cls(
            admin_url=text("webServiceUrl") or text("serviceUrl") or "http://localhost:8080",
            service_url=text("brokerServiceUrl") or "pulsar://localhost:6650",
            auth_plugin=text("authPlugin"),
            auth_params=text("authParams"),
            request_timeout_ms=_seconds(text("requestTimeoutSeconds", "300")) * 1000,
            tls_trust_certs_path=text("tlsTrustCertsFilePath"),
            tls_insecure_allowed=truth("tlsAllowInsecureConnection", False),
            tls_hostname_verified=truth("tlsEnableHostnameVerification", True),
            tls_certificate_path=text("tlsCertificateFilePath"),
            tls_key_path=text("tlsKeyFilePath"),
        )

    def credentials(self) -> Credentials | None:
        """Raises click.UsageError for a plug-in that is not supported."""
        from interpulse.client.auth import Credentials

        try:
            return Credentials.from_plugin(self.auth_plugin, self.auth_params)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def tls(self) -> TlsOptions:
        from interpulse.client.tls import TlsOptions

        return TlsOptions(
            self.tls_trust_certs_path,
            self.tls_insecure_allowed,
            self.tls_hostname_verified,
            self.tls_certificate_path,
            self.tls_key_path,
        )


def _seconds(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdigit() and int(text) > 0):
        raise click.UsageError(f"requestTimeoutSeconds must be a whole number above 0, not {text!r}")
    return int(text)


def read_client_conf(path: str | None) -> dict[str, str]:
    """The ``key=value`` lines of a file of Pulsar's client tools; nothing if ``path`` is None.

    Raises click.UsageError for a file that cannot be read, and for a line of another form.
    """
    if path is None:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise click.UsageError(f"{_CONF_VARIABLE}={path} cannot be read: {error.strerror}") from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        key, separator, value = line.strip().partition("=")
        if not key or key.startswith(("#", "!")):
            continue
        if not separator:
            raise click.UsageError(f"{_CONF_VARIABLE}={path}, line {number}: expected key=value, found {key!r}")
        settings[key.strip()] = value.strip()
    return settings
