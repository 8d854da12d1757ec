"""File ``client.conf`` of Pulsar's client tools, with the address of a cluster and the credentials.

Pulsar's own file works unchanged. Keys that only a Java process can obey are named in one warning. A key that Pulsar
does not know is refused, since a misspelt ``webServiceUrl`` would lead to the default address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from interpulse.terminal.lazy import nearest_name

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
    """Return the settings of the file by key, empty if ``path`` is None.

    Warns on standard error of keys without effect. Raises click.UsageError for an empty path, an unreadable file, a
    malformed line and a key that Pulsar does not know.
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
