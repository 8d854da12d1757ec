"""Address and credentials of a cluster, from flags, the environment, a context and ``client.conf``.

A flag overrides an environment variable, which overrides the current context, which overrides the file named by
``PULSAR_CLIENT_CONF``, which overrides the default. With a context, address and credentials of the file are ignored:
they belong to another cluster, and a token must not be sent to this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.support.connection.contexts import chosen_context
from interpulse.terminal.lazy import nearest_name

if TYPE_CHECKING:
    from interpulse.client.credentials import Credentials
    from interpulse.client.tls import TlsOptions

_LOCAL = (None, "pulsar://localhost:6650", "pulsar://127.0.0.1:6650")
_OF_A_CLUSTER = (
    "webServiceUrl",
    "serviceUrl",
    "brokerServiceUrl",
    "authPlugin",
    "authParams",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
)
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of every command that connects to a cluster."""

    given_admin_url: str | None
    given_service_url: str | None
    conf_path: str | None
    context: str | None
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
        cls, flags: Mapping[str, str | bool | int | None], environment: Mapping[str, str] = os.environ
    ) -> ConnectionSettings:
        """Combine the sources.

        ``flags`` has Pulsar's key names, None for missing flags, and the name of the ``context``.

        Raises click.UsageError for a configuration file or a context that cannot be used.
        """
        conf_path = environment.get(VARIABLE)
        conf = read_client_conf(conf_path)
        named = flags.get("context")
        context, of_context = chosen_context(None if named is None else str(named), environment)
        if context is not None:
            conf = {key: value for key, value in conf.items() if key not in _OF_A_CLUSTER}

        def text(key: str, default: str | None = None) -> str | None:
            for value in (flags.get(key), environment.get(key), of_context.get(key), conf.get(key)):
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
            given_admin_url=text("webServiceUrl") or text("serviceUrl"),
            given_service_url=text("brokerServiceUrl"),
            conf_path=conf_path,
            context=context,
            auth_plugin=text("authPlugin"),
            auth_params=text("authParams"),
            request_timeout_ms=_seconds(text("requestTimeoutSeconds", "300")) * 1000,
            tls_trust_certs_path=text("tlsTrustCertsFilePath"),
            tls_insecure_allowed=truth("tlsAllowInsecureConnection", False),
            tls_hostname_verified=truth("tlsEnableHostnameVerification", True),
            tls_certificate_path=text("tlsCertificateFilePath"),
            tls_key_path=text("tlsKeyFilePath"),
        )

    @property
    def admin_url(self) -> str:
        """URL of the web service. Raises click.UsageError if a context or a configuration file lacks it."""
        return self.given_admin_url or self._default("webServiceUrl", "--admin-url", "http://localhost:8080")

    @property
    def service_url(self) -> str:
        """URL of the binary service. Raises click.UsageError if a context or a configuration file lacks it."""
        return self.given_service_url or self._default("brokerServiceUrl", "--url", "pulsar://localhost:6650")

    @property
    def paired_admin_url(self) -> str | None:
        """URL of the web service of the service URL's cluster, if it is known without asking."""
        is_bare = self.conf_path is None and self.context is None
        if self.given_admin_url is not None or (is_bare and self.given_service_url in _LOCAL):
            return self.admin_url
        return None

    def _default(self, key: str, flag: str, url: str) -> str:
        """Return the default address unless there is a configuration.

        A configuration without an address does not mean this machine.
        """
        if self.context is not None:
            raise click.UsageError(
                f"The context {self.context} has no {key}: give {flag}, or create it again with both"
            )
        if self.conf_path is not None:
            raise click.UsageError(f"{VARIABLE}={self.conf_path} has no {key}: add it there, or give {flag}")
        return url

    def credentials(self) -> Credentials | None:
        """Return the credentials. Raise click.UsageError for a plug-in that is not supported."""
        from interpulse.client.credentials import Credentials

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
        raise click.UsageError(f"requestTimeoutSeconds must be a positive integer, not {text!r}")
    return int(text)


VARIABLE: Final = "PULSAR_CLIENT_CONF"
"""Environment variable that names the file."""

OBEYED: Final = (
    "webServiceUrl",
    "serviceUrl",
    "brokerServiceUrl",
    "authPlugin",
    "authParams",
    "requestTimeoutSeconds",
    "tlsAllowInsecureConnection",
    "tlsEnableHostnameVerification",
    "tlsTrustCertsFilePath",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
)
"""Keys that have an effect, in the file and as environment variables."""

_KEY_STORES: Final = (
    "certificates are read from PEM files: tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath"
)
_PROXY: Final = "connections go to the brokers without a proxy"
_EXTENSIONS: Final = "extensions of the command line are Java classes"
_WITHOUT_EFFECT: Final = {
    "useKeyStoreTls": ("false", _KEY_STORES),
    "tlsTrustStoreType": ("JKS", _KEY_STORES),
    "tlsTrustStorePath": ("", _KEY_STORES),
    "tlsTrustStorePassword": ("", _KEY_STORES),
    "tlsKeyStoreType": ("JKS", _KEY_STORES),
    "tlsKeyStorePath": ("", _KEY_STORES),
    "tlsKeyStorePassword": ("", _KEY_STORES),
    "webserviceTlsProvider": ("", "TLS is Python's own"),
    "sslFactoryPlugin": ("", "plug-ins for TLS are Java classes"),
    "sslFactoryPluginParams": ("", "plug-ins for TLS are Java classes"),
    "proxyServiceUrl": ("", _PROXY),
    "proxyProtocol": ("", _PROXY),
    "cliExtensionsDirectory": ("cliextensions", _EXTENSIONS),
    "customCommandFactories": ("", _EXTENSIONS),
}
"""Pulsar's other keys, with their value in the file it ships and the reason why another has no effect."""


def read_client_conf(path: str | None) -> dict[str, str]:
    """Return the settings of a ``client.conf`` of Pulsar's client tools by key, empty if ``path`` is None.

    Pulsar's own file works unchanged. Keys that only a Java process can obey are named in one warning. Raises
    click.UsageError for an empty path, an unreadable file, a malformed line, and a key that Pulsar does not know: a
    misspelt ``webServiceUrl`` would lead to the default address.
    """
    if path is None:
        return {}
    if not path.strip():
        raise click.UsageError(f"{VARIABLE} is set but empty: name a file such as conf/client.conf, or unset it")
    settings = dict(_checked(path, _lines(path)))
    _warn(path, settings)
    return {key: value for key, value in settings.items() if key in OBEYED}


def _lines(path: str) -> Iterator[tuple[int, str]]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise click.UsageError(f"{VARIABLE}={path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{VARIABLE}={path} cannot be read: it is not UTF-8 text") from error
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith(("#", "!")):
            yield number, text


def _checked(path: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    for number, text in lines:
        key, separator, value = (part.strip() for part in text.partition("="))
        place = f"{VARIABLE}={path}, line {number}"
        if not separator or not key:
            raise click.UsageError(f"{place}: expected key=value, found {text!r}")
        if key not in OBEYED and key not in _WITHOUT_EFFECT:
            raise click.UsageError(f"{place}: unknown key {key!r}; {_nearest(key)}")
        yield key, value


def _nearest(key: str) -> str:
    nearest = nearest_name(key, (*OBEYED, *_WITHOUT_EFFECT))
    return f"did you mean {nearest!r}?" if nearest else f"known keys: {', '.join(OBEYED)}"


def _warn(path: str, settings: Mapping[str, str]) -> None:
    reasons: dict[str, list[str]] = {}
    for key, (shipped, reason) in _WITHOUT_EFFECT.items():
        if settings.get(key, shipped) not in ("", shipped):
            reasons.setdefault(reason, []).append(key)
    if reasons:
        ignored = "; ".join(f"{', '.join(keys)} ({reason})" for reason, keys in reasons.items())
        click.echo(f"Warning: {VARIABLE}={path}: no effect here: {ignored}", err=True)
