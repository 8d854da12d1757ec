"""Settings of a proxy. The keys are those of Pulsar's ``proxy.conf``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Unpack

from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.client.config import BrokerAddress
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.serving.settings import LoadedConfig, Program, Setting, Sources, setting

_PORT_MAX: Final = 65_535
_BINARY_SCHEME: Final = {False: "pulsar://", True: "pulsar+ssl://"}
_WEB_SCHEME: Final = {False: "http://", True: "https://"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROTECTING_KEYS: Final = _words(
    """
brokerClientTlsEnabledWithKeyStore haProxyProtocolEnabled httpRequestsLimitEnabled tlsEnabledInProxy
tlsEnabledWithKeyStore tlsTrustStore webServiceHaProxyProtocolEnabled
"""
)
"""Keys that are empty or false in Pulsar's own file."""
PULSAR_KEYS: Final = PROTECTING_KEYS | _words(
    """
additionalServletDirectory additionalServlets authenticationRoleLoggingAnonymizer authorizationEnabled
authorizationProvider brokerClientCertificateFilePath brokerClientJsseProvider brokerClientKeyFilePath
brokerClientSslFactoryPlugin brokerClientSslFactoryPluginParams brokerClientSslProvider brokerClientTlsCiphers
brokerClientTlsFactoryClassName brokerClientTlsFactoryConfig brokerClientTlsKeyStore brokerClientTlsKeyStorePassword
brokerClientTlsKeyStoreType brokerClientTlsProtocols brokerClientTlsTrustStore brokerClientTlsTrustStorePassword
brokerClientTlsTrustStoreType checkActiveBrokers clusterName configurationMetadataStoreUrl configurationStoreServers
enableProxyStatsEndpoints functionWorkerWebServiceURL functionWorkerWebServiceURLTLS globalZookeeperServers
httpMaxRequestHeaderSize httpNumThreads httpOutputBufferSize httpProxyIdleTimeout
httpRequestsFailOnUnknownPropertiesEnabled httpRequestsMaxPerSecond httpReverseProxyConfigs httpServerAcceptQueueSize
httpServerThreadPoolQueueSize jsseProvider kinitCommand maxMessageSize maxTopicListInFlightDirectMemSizeMB
maxTopicListInFlightDirectMemSizePermitsAcquireQueueSize maxTopicListInFlightDirectMemSizePermitsAcquireTimeoutMillis
maxTopicListInFlightHeapMemSizeMB maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize
maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis metadataStoreAllowReadOnlyOperations
metadataStoreCacheExpirySeconds metricsServletTimeoutMs narExtractionDirectory numAcceptorThreads numIOThreads
openIDFallbackDiscoveryMode proxyAdditionalServletDirectory proxyAdditionalServlets proxyExtensions
proxyExtensionsDirectory proxyHttpResponseHeadersJson proxyLogLevel proxyZeroCopyModeEnabled saslJaasClientAllowedIds
saslJaasServerRoleTokenSignerSecretPath saslJaasServerSectionName sslFactoryPlugin sslFactoryPluginParams statusFilePath
superUserRoles tlsAllowInsecureConnection tlsCiphers tlsFactoryClassName tlsFactoryConfig tlsKeyStore
tlsKeyStorePassword tlsKeyStoreType tlsProtocols tlsProvider tlsTrustStorePassword tlsTrustStoreType tokenSettingPrefix
useSeparateThreadPoolForProxyExtensions webServiceLogDetailedAddresses webServiceTlsCiphers webServiceTlsProtocols
webServiceTlsProvider webServiceTrustXForwardedFor webSocketPingDurationSeconds webSocketServiceEnabled
zooKeeperAllowReadOnlyOperations zooKeeperCacheExpirySeconds zookeeperServers zookeeperSessionTimeoutMs
"""
)
"""Keys of the proxy of Apache Pulsar up to 5.0.0-M1, and of its authentication providers, without effect here."""


@dataclass(frozen=True, slots=True)
class ProxyConfig(ProviderSettings):
    """Every setting that affects the proxy."""

    # --- brokers
    broker_service_url: str = setting(
        "",
        "Brokers, pulsar://host:port with commas between several; not needed with metadataStoreUrl.",
        key="brokerServiceURL",
    )
    broker_service_url_tls: str = setting(
        "", "The same with tlsEnabledWithBroker=true: pulsar+ssl://host:port.", key="brokerServiceURLTLS"
    )
    broker_web_service_url: str = setting(
        "", "Their web services, http://host:port with commas between several.", key="brokerWebServiceURL"
    )
    broker_web_service_url_tls: str = setting(
        "", "The same with tlsEnabledWithBroker=true: https://host:port.", key="brokerWebServiceURLTLS"
    )
    metadata_store_url: str = setting(
        "",
        "ZooKeeper where the brokers of the cluster register, zk:host:2181,host:2181/path; the proxy follows them as "
        "they come and go.",
    )
    metadata_store_session_timeout_millis: int = setting(
        30_000, "Session timeout of metadataStoreUrl, in milliseconds.", least=1000
    )
    broker_proxy_allowed_host_names: str = setting(
        "*", "Host names of brokers that clients may be connected to, with commas between them; * stands for any text."
    )
    broker_proxy_allowed_ip_addresses: str = setting(
        "*",
        "Addresses that these names may resolve to: single ones or networks such as 10.0.0.0/8; * = any.",
        key="brokerProxyAllowedIPAddresses",
    )
    broker_proxy_allowed_target_ports: str = setting(
        "*", "Ports of brokers that clients may be connected to, such as 6650,6651 or 6650-6660; * = any."
    )
    broker_proxy_connect_timeout_ms: int = setting(
        10_000, "Longest wait for a connection to a broker, in milliseconds.", least=1
    )
    broker_proxy_read_timeout_ms: int = setting(
        75_000, "Idle time after which a connection to a broker is closed, in milliseconds.", least=1
    )

    # --- own addresses
    advertised_address: str = setting("", "Host name in the addresses that are shown; empty = the bind address.")
    service_port: int = setting(6650, "Port of the binary protocol; 0 = a free one.", most=_PORT_MAX)
    service_port_tls: int | None = setting(
        None, "Port of the binary protocol inside TLS; 0 = a free one, empty = none.", most=_PORT_MAX
    )
    web_service_port: int = setting(8080, "Port of the admin API, metrics and health; 0 = a free one.", most=_PORT_MAX)
    web_service_port_tls: int | None = setting(
        None, "Port of the same inside TLS; 0 = a free one, empty = none.", most=_PORT_MAX
    )
    web_service_allowed_hosts: str = setting(
        "",
        "Further names by which the admin API may be called, with commas between them; "
        ".example.com = everything below it, * = any.",
    )

    # --- encryption between proxy and brokers
    tls_enabled_with_broker: bool = setting(False, "The proxy connects to brokers with TLS.")
    broker_client_trust_certs_file_path: str = setting(
        "", "Authorities for the certificates of brokers (PEM); empty = those of the system."
    )
    tls_hostname_verification_enabled: bool = setting(True, "The certificate of a broker must name its host.")

    # --- authentication of clients
    authentication_enabled: bool = setting(
        False, "Clients must authenticate to the proxy, which speaks for them to brokers with its own credentials."
    )
    authenticate_metrics_endpoint: bool = setting(
        True, "The metrics endpoint requires authentication, with authenticationEnabled=true."
    )

    # --- credentials of the proxy
    broker_client_authentication_plugin: str = setting(
        "", "Authentication plugin of the proxy towards brokers: a Java class name such as AuthenticationToken."
    )
    broker_client_authentication_parameters: str = setting(
        "", "Its credentials, for example file:///path/to/token.", secret=True
    )
    forward_authorization_credentials: bool = setting(
        False,
        "Brokers receive the credentials of clients: besides those of the proxy with authenticationEnabled=true, as "
        "those of the connection without it.",
    )

    # --- limits
    max_concurrent_inbound_connections: int = setting(
        10_000, "Most connections of clients; further ones are closed immediately.", least=1
    )
    max_concurrent_inbound_connections_per_ip: int = setting(0, "Most connections from one address; 0 = no limit.")
    max_concurrent_lookup_requests: int = setting(
        50_000, "Most lookups and metadata queries in progress; further ones are refused.", least=1
    )
    keep_alive_interval_seconds: int = setting(
        30, "Silent clients and brokers are pinged after this many seconds while clients look up.", least=1
    )
    max_concurrent_http_requests: int = setting(
        1024, "Most calls of the admin API in progress, further ones are refused; 0 = no limit."
    )
    max_http_server_connections: int = setting(
        2048, "Most clients of the web ports, further ones are disconnected; 0 = no limit."
    )
    http_server_idle_timeout: int = setting(
        30_000,
        "How long a client of the web ports may take until it begins a call, and until it has read the answer, in "
        "milliseconds.",
        least=1,
    )
    http_proxy_timeout: int = setting(
        300_000,
        "Longest wait for the body of a call of the admin API, then for the answer of a broker, and for the client to "
        "take that; in milliseconds.",
        least=1,
    )
    http_input_max_replay_buffer_size: int = setting(
        5 * 1024 * 1024,
        "Largest body of a call of the admin API, in bytes: it is kept, because a broker may send the call on.",
        least=1,
    )

    def problems(self) -> Iterator[str]:
        """Yield the problems of settings that are valid each alone, one sentence for each."""
        suffix = "TLS" if self.tls_enabled_with_broker else ""
        binary, web = f"brokerServiceURL{suffix}", f"brokerWebServiceURL{suffix}"
        binary_scheme, web_scheme = self._schemes
        if not self.metadata_store_url:
            if not self._binary_text:
                yield (
                    f"the brokers are not named: give {binary}={binary_scheme}host:port, "
                    "or metadataStoreUrl=zk:host:2181 where they register"
                )
            if not self.web_urls:
                yield f"their web services are not named: give {web}={web_scheme}host:port"
        elif not self.metadata_store_url.startswith("zk:"):
            yield f"metadataStoreUrl={self.metadata_store_url}: must begin with zk:, as zk:host:2181/path"
        for url in _listed(self._binary_text, _BINARY_SCHEME.values()):
            try:
                usable = BrokerAddress.parse(url).tls == self.tls_enabled_with_broker
            except ValueError:
                usable = False
            if not usable:
                yield f"{binary}={url}: must be {binary_scheme}host:port, with commas between several"
        for url in self.web_urls:
            if not url.startswith(web_scheme):
                yield f"{web}={url}: must be {web_scheme}host:port"
        yield from self._problems_of_access()
        yield from self._problems_of_tls()

    def _problems_of_tls(self) -> Iterator[str]:
        encrypted = self.service_port_tls is not None or self.web_service_port_tls is not None
        if encrypted and not (self.tls_certificate_file_path and self.tls_key_file_path):
            yield "servicePortTls and webServicePortTls need tlsCertificateFilePath and tlsKeyFilePath (PEM files)"
        if self.tls_trust_certs_file_path and not encrypted:
            yield (
                "tlsTrustCertsFilePath has no effect: no port is inside TLS. Give servicePortTls and webServicePortTls"
            )
        if self.tls_require_trusted_client_cert_on_connect and not self.tls_trust_certs_file_path:
            yield (
                "tlsRequireTrustedClientCertOnConnect=true needs tlsTrustCertsFilePath, a PEM file of the authorities "
                "that sign the certificates of clients"
            )

    def _problems_of_access(self) -> Iterator[str]:
        try:
            own = self.own_credentials
        except ValueError as error:
            yield f"brokerClientAuthenticationParameters: {error}"
            return
        if own is not None and not self.authentication_enabled:
            yield (
                "brokerClientAuthenticationPlugin needs authenticationEnabled=true: to brokers every client would be "
                "the proxy"
            )
        if own is None and self.authentication_enabled and self.forward_authorization_credentials:
            yield (
                "forwardAuthorizationCredentials=true with authenticationEnabled=true needs "
                "brokerClientAuthenticationPlugin: brokers take the credentials of clients from a proxy that they know"
            )
        if own is not None and own.method == "tls" and not self.tls_enabled_with_broker:
            yield (
                "brokerClientAuthenticationPlugin=AuthenticationTls needs tlsEnabledWithBroker=true: the proxy shows "
                "its certificate inside TLS"
            )

    @property
    def own_credentials(self) -> Credentials | None:
        """The proxy's credentials towards brokers. Raises ValueError."""
        return Credentials.from_plugin(
            self.broker_client_authentication_plugin, self.broker_client_authentication_parameters
        )

    @property
    def broker_urls(self) -> tuple[BrokerAddress, ...]:
        """Brokers of the settings."""
        return tuple(BrokerAddress.parse(url) for url in _listed(self._binary_text, _BINARY_SCHEME.values()))

    @property
    def web_urls(self) -> tuple[str, ...]:
        """The web services of the brokers in the settings, without a slash at the end."""
        text = self.broker_web_service_url_tls if self.tls_enabled_with_broker else self.broker_web_service_url
        return _listed(text, _WEB_SCHEME.values())

    @property
    def broker_tls(self) -> TlsOptions:
        """The verification of brokers' certificates, and the proxy's own certificate."""
        checked = TlsOptions(
            trust_certs_path=self.broker_client_trust_certs_file_path or None,
            hostname_verified=self.tls_hostname_verification_enabled,
        )
        return checked.showing(self.own_credentials, self._schemes[0])

    @property
    def _schemes(self) -> tuple[str, str]:
        return _BINARY_SCHEME[self.tls_enabled_with_broker], _WEB_SCHEME[self.tls_enabled_with_broker]

    @property
    def _binary_text(self) -> str:
        return self.broker_service_url_tls if self.tls_enabled_with_broker else self.broker_service_url


def _listed(text: str, schemes: Iterable[str]) -> tuple[str, ...]:
    """Return comma-separated URLs. Only the first needs the scheme, as in Pulsar."""
    scheme = next((scheme for scheme in schemes if text.startswith(scheme)), "")
    parts = [part.strip().rstrip("/") for part in text.split(",") if part.strip()]
    return tuple(part if "://" in part else scheme + part for part in parts)


def _refused(key: str, value: str) -> str:
    """Refuse a setting of authorization, which brokers alone decide, since they know the topics."""
    if key != "authorizationEnabled" or value.lower() in ("", "false"):
        return ""
    return (
        "the proxy decides nothing about topics. Brokers do, with their own authorizationEnabled=true and the role of "
        "this proxy among their proxyRoles; take it out here"
    )


_PROXY: Final = Program(
    name="proxy",
    config=ProxyConfig,
    problems=ProxyConfig.problems,
    pulsar_keys=PULSAR_KEYS,
    protecting_keys=PROTECTING_KEYS,
    refusal=(
        "this proxy does not offer it, and would serve without the protection that is asked for here. Take them out; "
        "with authenticationEnabled=true the proxy checks the credentials of clients"
    ),
    refused=_refused,
)


def proxy_settings() -> dict[str, Setting]:
    """Return every setting by its key."""
    return dict(_PROXY.settings)


def load_config(**sources: Unpack[Sources]) -> LoadedConfig[ProxyConfig]:
    """Join all sources; see `Program.load`. Raise ConfigError with all problems of all sources."""
    return _PROXY.load(**sources)
