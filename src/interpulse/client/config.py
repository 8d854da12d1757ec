"""Client settings: service URL, timeouts, credentials, encryption."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from interpulse.client.checks import check_least, check_provider, check_type
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.clusters import shown_address

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_BINARY_PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651}
_WEB_SCHEMES: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Address to connect to. ``behind`` is the host:port of the target broker if a proxy answers at the address."""

    host: str
    port: int
    tls: bool = False
    behind: str | None = None

    def __str__(self) -> str:
        scheme = "pulsar+ssl" if self.tls else "pulsar"
        host = f"[{self.host}]" if ":" in self.host else self.host
        suffix = f" (for {self.behind})" if self.behind else ""
        return f"{scheme}://{host}:{self.port}{suffix}"

    @classmethod
    def parse(cls, text: str) -> BrokerAddress:
        """Parse ``pulsar://host[:port]`` or ``pulsar+ssl://host[:port]``. Raise ValueError."""
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in _BINARY_PORTS:
            raise ValueError(
                f"not a broker URL: {shown_address(text)!r}, expected pulsar://host:port or pulsar+ssl://host:port"
            )
        host, port = _host_and_port(text, rest, _BINARY_PORTS[scheme])
        return cls(host, port, tls=scheme == "pulsar+ssl")


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """Address that a client starts from: one or several brokers or proxies, binary or HTTP."""

    text: str
    tls: bool
    brokers: tuple[BrokerAddress, ...]
    """Broker addresses, empty if lookups use HTTP."""

    @property
    def is_http(self) -> bool:
        return not self.brokers

    @classmethod
    def parse(cls, text: str) -> ServiceUrl:
        """Parse ``pulsar://a:6650,b:6650``, ``pulsar+ssl://``, ``http://`` or ``https://``. Raise ValueError."""
        scheme, separator, rest = text.strip().partition("://")
        if separator and scheme in _WEB_SCHEMES and rest:
            return cls(text.strip(), scheme == "https", ())
        hosts = [part.strip() for part in rest.rstrip("/").split(",") if part.strip()]
        if not separator or scheme not in _BINARY_PORTS or not hosts:
            raise ValueError(
                f"not a service URL: {shown_address(text)!r}, expected pulsar://, pulsar+ssl://, http:// or https://"
            )
        brokers = tuple(BrokerAddress.parse(f"{scheme}://{host}") for host in hosts)
        return cls(text.strip(), scheme == "pulsar+ssl", brokers)


def _host_and_port(text: str, rest: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{rest}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.path.strip("/"):
        raise ValueError(f"not a broker URL: {shown_address(text)!r}, expected pulsar://host:port")
    return host, default_port if port is None else port


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of one client. The names of times end in their unit."""

    service_url: str
    """pulsar://host:port, with several hosts separated by commas. Also pulsar+ssl://, http:// and https://."""

    operation_timeout_ms: int = 30_000
    """Timeout for opening a producer or consumer, and for every request to a broker."""

    lookup_timeout_ms: int = 30_000
    """Timeout for looking up a topic, retries included."""

    connect_timeout_ms: int = 10_000
    keep_alive_interval_ms: int = 30_000
    backoff_initial_ms: int = 100
    backoff_max_ms: int = 60_000
    lookup_redirects_max: int = 20
    concurrent_lookups_max: int = 1000
    """Maximum number of concurrent single lookups, if the broker has no batch lookup."""

    batch_lookup_topics_max: int = 500
    reader_overlap_s: int = 60
    """Seconds that a reader reads again after a change to another cluster whose copies do not name their source."""

    listener_name: str | None = None
    credentials: Credentials | None = None
    tls: TlsOptions | None = None
    """Certificate checks and the client's own certificate. None: check everything, present none."""

    tracing: bool | TracerProvider = False
    """OpenTelemetry spans for messages sent and processed (PIP-446).

    A tracer provider, or True for the global one. Needs the extra ``tracing``.
    """

    metrics: bool | MeterProvider = False
    """OpenTelemetry metrics: a meter provider, or True for the global one. Needs the extra ``tracing``."""

    url: ServiceUrl = field(init=False, repr=False, compare=False)
    """Parsed service URL."""

    encryption: TlsOptions = field(init=False, repr=False, compare=False)
    """``tls`` combined with the certificate of the credentials."""

    def __post_init__(self) -> None:
        check_type("service_url", self.service_url, str)
        check_least(self, 1, "operation_timeout_ms", "lookup_timeout_ms", "connect_timeout_ms")
        check_least(self, 1, "keep_alive_interval_ms", "backoff_initial_ms", "backoff_max_ms")
        check_least(self, 0, "reader_overlap_s")
        check_least(self, 1, "concurrent_lookups_max", "batch_lookup_topics_max")
        check_provider("tracing", self.tracing, "get_tracer")
        check_provider("metrics", self.metrics, "get_meter")
        object.__setattr__(self, "url", ServiceUrl.parse(self.service_url))
        encryption = (self.tls or TlsOptions()).showing(self.credentials, self.url.text)
        object.__setattr__(self, "encryption", encryption)
