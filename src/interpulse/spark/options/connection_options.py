"""Options of a connection, shared by reads and writes: addresses, timeouts and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from interpulse.spark.options.access import Access
from interpulse.spark.options.option import Option, Purpose, build_options, option, option_group, read_values
from interpulse.spark.options.option_values import (
    parse_flag,
    parse_positive,
    parse_positive_duration_ms,
    parse_service_url,
    parse_web_url,
)

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient


def _parse_seconds(text: str) -> int:
    return parse_positive(text) * 1000


_HIDDEN_KEY: Final = "token"
_NOT_SHOWN: Final = ("token:", "file:", "env:", "{", "tlsCertFile:", "tlsKeyFile:")
"""Prefixes of parameters without a secret, or redacted by Spark because of password, secret or url in JSON."""


def _shown_secret(key: str, text: str) -> str | None:
    """Return the reason to refuse a secret that Spark shows. It hides options whose key or value names a secret."""
    if _HIDDEN_KEY in key.lower() or text.startswith(_NOT_SHOWN):
        return None
    return "Spark would show it in plans and pages: name a file, file:///path, or write token:..., or JSON"


_ACCESS: Final[Mapping[str, Option]] = {
    "token": Option(
        "authToken",
        str,
        None,
        aliases=("pulsar.client.authParams",),
        text="token to authenticate with: best `file:///path`, which every machine reads again for every "
        "connection; or `env:NAME`, or the token itself, as parameters with `token:` in front",
        refusal=_shown_secret,
    ),
    "token_file": Option(
        "authTokenFile",
        str,
        None,
        text="file of the token to authenticate with, instead of `authToken`; it has to be on every machine",
    ),
    "plugin": Option(
        "pulsar.client.authPluginClassName",
        str,
        None,
        text="the authentication plug-in that reads `pulsar.client.authParams`, by its Java name: AuthenticationToken "
        "(the default), AuthenticationTls, AuthenticationBasic (best `file:///path` of the user and password), "
        'AuthenticationOAuth2 (`{"issuerUrl":"https://...","privateKey":"file:///path","audience":"..."}`)',
    ),
    "trust_certs_file": Option(
        "tlsTrustCertsFile",
        str,
        None,
        aliases=("pulsar.client.tlsTrustCertsFilePath",),
        text="file of the certificates that are trusted with `pulsar+ssl://`; without it the system's",
    ),
    "insecure_allowed": Option(
        "tlsAllowInsecureConnection",
        parse_flag,
        False,
        aliases=("pulsar.client.tlsAllowInsecureConnection",),
        text="trust any certificate with `pulsar+ssl://`, even one for another host",
    ),
    "certificate_file": Option(
        "tlsCertificateFile",
        str,
        None,
        aliases=("pulsar.client.tlsCertificateFilePath",),
        text="file of the client certificate for `pulsar+ssl://`, on every machine; authenticates without a token",
    ),
    "key_file": Option(
        "tlsKeyFile",
        str,
        None,
        aliases=("pulsar.client.tlsKeyFilePath",),
        text="file of the certificate's key, without a password",
    ),
    "listener_name": Option(
        "listenerName",
        str,
        None,
        aliases=("pulsar.client.listenerName",),
        text="advertised listener through which brokers are reached",
    ),
}
"""Options by the argument of :class:`Access` that they fill."""

_TIMES: Final[Mapping[str, Option]] = {
    "connect_timeout_ms": Option(
        "connectionTimeoutMs",
        parse_positive_duration_ms,
        None,
        aliases=("pulsar.client.connectionTimeoutMs", "pulsar.client.connectionTimeoutMillis"),
        text="longest wait for a connection. Default: 10 s",
    ),
    "lookup_timeout_ms": Option(
        "lookupTimeoutMs",
        parse_positive_duration_ms,
        None,
        aliases=("pulsar.client.lookupTimeoutMs", "pulsar.client.lookupTimeoutMillis"),
        text="longest search for the broker of a topic, attempts included. Default: `operationTimeoutMs`",
    ),
    "keep_alive_interval_ms": Option(
        "pulsar.client.keepAliveIntervalSeconds",
        _parse_seconds,
        None,
        text="seconds of silence after which a connection is probed. Default: 30",
    ),
}

_ADMIN_TOKEN: Final = (
    "to authenticate differently at `admin.url`: as `authToken`, or the parameters of "
    "`pulsar.admin.authPluginClassName`. Default: the credentials of `service.url`"
)
_ADMIN_NAMES: Final = {
    "token": "authParams",
    "plugin": "authPluginClassName",
    "trust_certs_file": "tlsTrustCertsFilePath",
    "insecure_allowed": "tlsAllowInsecureConnection",
    "certificate_file": "tlsCertificateFilePath",
    "key_file": "tlsKeyFilePath",
}


def service_url_option() -> Any:
    """Return a field for the address of the cluster."""
    return option(
        "service.url",
        parse_service_url,
        aliases=("serviceUrl", "pulsar.client.serviceUrl"),
        text="binary service URL, for example `pulsar://127.0.0.1:6650`; required",
    )


def admin_url_option() -> Any:
    """Return a field for the address of the admin API.

    Queries that call nothing there accept it too: configurations of several queries or of other connectors have it.
    """
    return option(
        "admin.url",
        parse_web_url,
        None,
        aliases=("adminUrl", "pulsar.admin.serviceUrl"),
        text="REST URL, for example `http://127.0.0.1:8080`. `createTopics=N` creates topics there, exactly-once asks "
        "there whether they de-duplicate, `planner` how large topic-partitions are; everything else does without",
    )


def operation_timeout_option() -> Any:
    """Return a field for the timeout of one request, in milliseconds."""
    return option(
        "operationTimeoutMs",
        parse_positive_duration_ms,
        30_000,
        aliases=("pulsar.client.operationTimeoutMs", "pulsar.client.operationTimeoutMillis"),
        text="longest wait for the answer to one request",
    )


def outage_timeout_option() -> Any:
    """Return a field for the longest outage of a cluster, in milliseconds; None: no limit."""
    return option(
        "outageTimeoutMs",
        parse_positive_duration_ms,
        None,
        text="longest wait of a running query for a cluster that does not answer, is full or refuses an expired token "
        "from a file. Default: no limit",
    )


def access_options(prefix: str = "") -> Any:
    """Return a field for an :class:`Access`; with a prefix, to another cluster than the one of ``service.url``."""
    options = _prefixed(prefix) if prefix else {**_ACCESS, **_TIMES}
    return option_group(Access, options, f"access to {prefix or 'service.url'}")


def admin_access_options() -> Any:
    """Return a field for an :class:`Access` with the options of the admin API alone."""
    options = {key: _renamed(_ACCESS[key], f"pulsar.admin.{name}", "`admin.url`") for key, name in _ADMIN_NAMES.items()}
    options["token"] = replace(options["token"], text=_ADMIN_TOKEN)
    return option_group(Access, options, "access to admin.url")


def admin_client(admin_url: str, access: Access, admin_access: Access, timeout_ms: int) -> AdminClient:
    """Return a client of the admin API that is not connected yet. Missing options are those of the brokers."""
    from interpulse.client.admin.admin_client import AdminClient

    return AdminClient(
        admin_url,
        credentials=admin_access.credentials_beside(access),
        tls=admin_access.tls_beside(access),
        timeout_ms=timeout_ms,
    )


def _prefixed(prefix: str) -> dict[str, Option]:
    return {key: _renamed(access, _with_prefix(prefix, access.name), "that cluster") for key, access in _ACCESS.items()}


def _renamed(option: Option, name: str, target: str) -> Option:
    return replace(option, name=name, aliases=(), text=f"as `{option.name}`, for {target}")


def _with_prefix(prefix: str, name: str) -> str:
    return prefix + name[0].upper() + name[1:] if prefix else name


def access_as_options(access: Access, prefix: str = "") -> dict[str, str]:
    """Return the options that make this access."""
    options = _ACCESS if prefix else {**_ACCESS, **_TIMES}
    values = {option: getattr(access, argument) for argument, option in options.items()}
    return {
        _with_prefix(prefix, option.name): _as_text(option, value)
        for option, value in values.items()
        if value != option.default
    }


def _as_text(option: Option, value: Any) -> str:
    if option is _TIMES["keep_alive_interval_ms"]:
        return str(value // 1000)
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Options of a cluster outside queries: its address and credentials."""

    service_url: str = service_url_option()
    access: Access = access_options()  # noqa: RUF009 - a dataclass field


def parse_cluster_options(mapping: Mapping[str, str]) -> ClusterOptions:
    """Read the options of a cluster, which have the names of the data source. Raise OptionError with every problem."""
    problems: list[str] = []
    values = read_values(ClusterOptions, mapping, Purpose.BATCH_READ, problems)
    return build_options(ClusterOptions, values, problems)
