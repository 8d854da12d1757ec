"""Options of a connection, shared by reads and writes: addresses, timeouts and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.setting_values import parse_service_url
from interpulse.spark.options.option import (
    Option,
    Purpose,
    build_options,
    option,
    option_group,
    options_of,
    read_values,
)
from interpulse.spark.options.option_values import duration, flag, parse_positive, parse_web_url

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_KEEP_ALIVE: Final = "pulsar.client.keepAliveIntervalSeconds"


@dataclass(frozen=True)
class Access:
    """Access to one cluster, small enough to be sent to Spark's workers.

    Files of secrets, certificates and keys are read on each worker, again for every connection. Without a token the
    certificate authenticates. Timeouts of None are the client's defaults.
    """

    token: str | None = option(
        None,
        "token to authenticate with: best `file:///path`, which every machine reads again for every connection; or "
        "`env:NAME`, or the token itself, as parameters with `token:` in front",
        name="authToken",
        aliases=("pulsar.client.authParams",),
        secret=True,
    )
    trust_certs_file: str | None = option(
        None,
        "file of the certificates that are trusted with `pulsar+ssl://`; without it the system's",
        name="tlsTrustCertsFile",
        aliases=("pulsar.client.tlsTrustCertsFilePath",),
    )
    insecure_allowed: bool = flag(
        False,
        "trust any certificate with `pulsar+ssl://`, even one for another host",
        name="tlsAllowInsecureConnection",
        aliases=("pulsar.client.tlsAllowInsecureConnection",),
    )
    certificate_file: str | None = option(
        None,
        "file of the client certificate for `pulsar+ssl://`, on every machine; authenticates without a token",
        name="tlsCertificateFile",
        aliases=("pulsar.client.tlsCertificateFilePath",),
    )
    key_file: str | None = option(
        None,
        "file of the certificate's key, without a password",
        name="tlsKeyFile",
        aliases=("pulsar.client.tlsKeyFilePath",),
    )
    listener_name: str | None = option(
        None, "advertised listener through which brokers are reached", aliases=("pulsar.client.listenerName",)
    )
    token_file: str | None = option(
        None,
        "file of the token to authenticate with, instead of `authToken`; it has to be on every machine",
        name="authTokenFile",
    )
    plugin: str | None = option(
        None,
        "the authentication plug-in that reads `pulsar.client.authParams`, by its Java name: AuthenticationToken "
        "(the default), AuthenticationTls, AuthenticationBasic (best `file:///path` of the user and password), "
        'AuthenticationOAuth2 (`{"issuerUrl":"https://...","privateKey":"file:///path","audience":"..."}`)',
        name="pulsar.client.authPluginClassName",
    )
    connect_timeout_ms: int | None = duration(
        None,
        "longest wait for a connection. Default: 10 s",
        name="connectionTimeoutMs",
        aliases=("pulsar.client.connectionTimeoutMs", "pulsar.client.connectionTimeoutMillis"),
    )
    lookup_timeout_ms: int | None = duration(
        None,
        "longest search for the broker of a topic, attempts included. Default: `operationTimeoutMs`",
        aliases=("pulsar.client.lookupTimeoutMs", "pulsar.client.lookupTimeoutMillis"),
    )
    keep_alive_interval_ms: int | None = option(
        None,
        "seconds of silence after which a connection is probed. Default: 30",
        lambda text: parse_positive(text) * 1000,
        name=_KEEP_ALIVE,
    )

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown authentication plug-in, or for two ways to authenticate."""
        if self.token_file is not None and (self.token is not None or self.plugin is not None):
            raise ValueError("authTokenFile excludes authToken and authentication plug-ins: use one of them")
        _ = self.credentials

    @property
    def credentials(self) -> Credentials | None:
        if self.plugin is not None:
            return Credentials.from_plugin(self.plugin, self.token)
        if self.token_file is not None:
            return Credentials.token(f"file:{self.token_file.removeprefix('file:')}")
        if self.token is not None:
            return Credentials.token(self.token)
        return Credentials("tls", "") if self.certificate_file is not None else None

    @property
    def rereads_credentials(self) -> bool:
        """Return True if files or an issuer may give other credentials to the next connection."""
        credentials = self.credentials
        return self.certificate_file is not None or (credentials is not None and credentials.can_change)

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(
            self.trust_certs_file, self.insecure_allowed, certificate_path=self.certificate_file, key_path=self.key_file
        )


def access_of(address: ClusterAddress) -> Access:
    """Return our access to a cluster with the credentials of an address."""
    return Access(
        address.token if address.auth_plugin is None else address.auth_params,
        address.trust_certs_file,
        address.tls_allow_insecure_connection,
        address.certificate_file,
        address.key_file,
        address.listener_name,
        plugin=address.auth_plugin,
    )


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
_TIMES: Final = ("connect_timeout_ms", "lookup_timeout_ms", "keep_alive_interval_ms")
"""Fields of an access to the cluster of the query alone."""


def service_url_option() -> Any:
    """Return a field for the address of the cluster."""
    return option(
        MISSING,
        "binary service URL, for example `pulsar://127.0.0.1:6650`; required",
        parse_service_url,
        name="service.url",
        aliases=("serviceUrl", "pulsar.client.serviceUrl"),
    )


def admin_url_option() -> Any:
    """Return a field for the address of the admin API.

    Queries that call nothing there accept it too: configurations of several queries or of other connectors have it.
    """
    return option(
        None,
        "REST URL, for example `http://127.0.0.1:8080`. `createTopics=N` creates topics there, exactly-once asks "
        "there whether they de-duplicate, `planner` how large topic-partitions are; everything else does without",
        parse_web_url,
        name="admin.url",
        aliases=("adminUrl", "pulsar.admin.serviceUrl"),
    )


def operation_timeout_option() -> Any:
    """Return a field for the timeout of one request, in milliseconds."""
    return duration(
        30_000,
        "longest wait for the answer to one request",
        aliases=("pulsar.client.operationTimeoutMs", "pulsar.client.operationTimeoutMillis"),
    )


def outage_timeout_option() -> Any:
    """Return a field for the longest outage of a cluster, in milliseconds; None: no limit."""
    return duration(
        None,
        "longest wait of a running query for a cluster that does not answer, is full or refuses an expired token "
        "from a file. Default: no limit",
    )


def access_options(prefix: str = "") -> Any:
    """Return a field for an :class:`Access`; with a prefix, to another cluster than the one of ``service.url``."""
    options = options_of(Access)
    if prefix:
        options = {
            field: _renamed(option, _with_prefix(prefix, option.name), "that cluster")
            for field, option in options.items()
            if field not in _TIMES
        }
    return option_group(Access, options, f"access to {prefix or 'service.url'}")


def admin_access_options() -> Any:
    """Return a field for an :class:`Access` with the options of the admin API alone."""
    declared = options_of(Access)
    options = {
        field: _renamed(declared[field], f"pulsar.admin.{name}", "`admin.url`") for field, name in _ADMIN_NAMES.items()
    }
    options["token"] = replace(options["token"], text=_ADMIN_TOKEN)
    return option_group(Access, options, "access to admin.url")


def _renamed(option: Option, name: str, target: str) -> Option:
    return replace(option, name=name, aliases=(), text=f"as `{option.name}`, for {target}")


def _with_prefix(prefix: str, name: str) -> str:
    return prefix + name[0].upper() + name[1:] if prefix else name


def admin_client(admin_url: str, access: Access, admin_access: Access, timeout_ms: int) -> AdminClient:
    """Return a client of the admin API that is not connected yet. Missing options are those of the brokers."""
    from interpulse.client.admin.admin_client import AdminClient

    return AdminClient(
        admin_url,
        credentials=admin_access.credentials or access.credentials,
        tls=access.tls if admin_access.tls == Access().tls else admin_access.tls,
        timeout_ms=timeout_ms,
    )


def access_as_options(access: Access, prefix: str = "") -> dict[str, str]:
    """Return the options that make this access."""
    values = {field: getattr(access, field) for field in options_of(Access) if not (prefix and field in _TIMES)}
    return {
        _with_prefix(prefix, option.name): _as_text(option, values[field])
        for field, option in options_of(Access).items()
        if values.get(field, option.default) != option.default
    }


def _as_text(option: Option, value: Any) -> str:
    if option.name == _KEEP_ALIVE:
        return str(value // 1000)
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Options of a cluster outside queries: its address and credentials."""

    service_url: str = service_url_option()
    access: Access = access_options()


def parse_cluster_options(mapping: Mapping[str, str]) -> ClusterOptions:
    """Read the options of a cluster, which have the names of the data source. Raise OptionError with every problem."""
    problems: list[str] = []
    values = read_values(ClusterOptions, mapping, Purpose.BATCH_READ, problems)
    return build_options(ClusterOptions, values, problems)
