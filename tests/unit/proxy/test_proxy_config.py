"""The settings of a proxy."""

from __future__ import annotations

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.proxy.proxy_config import PROTECTING_KEYS, PULSAR_KEYS, ProxyConfig, load_config, proxy_settings
from interpulse.serving.settings import ConfigError

BROKERS = ("brokerServiceURL=pulsar://b:6650", "brokerWebServiceURL=http://b:8080")
ON, FORWARDED = "authenticationEnabled=true", "forwardAuthorizationCredentials=true"
PLUGIN, TOKEN = "brokerClientAuthenticationPlugin=AuthenticationToken", "brokerClientAuthenticationParameters=token:x"
BY_CERTIFICATE = (
    "brokerClientAuthenticationPlugin=AuthenticationTls",
    "brokerClientAuthenticationParameters=tlsCertFile:/c.pem,tlsKeyFile:/k.pem",
)


def problems(*settings: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        load_config(settings=settings)
    return refused.value.problems


PROPOSED = {
    "tlsCertIdentitySource",
    "tlsAuthPrincipalMappingRules",
    "tokenRequireKid",
    "tokenValidationKeysJwks",
    "tokenValidationKeysRefreshSeconds",
}
"""Keys of PIP-485 and PIP-490, which no release of Pulsar has yet."""


_OF_PULSAR = """
advertisedAddress anonymousUserRole authenticateMetricsEndpoint authenticationEnabled authenticationProviders
authenticationRefreshCheckSeconds basicAuthConf bindAddress brokerClientAuthenticationParameters
brokerClientAuthenticationPlugin brokerClientTrustCertsFilePath brokerProxyAllowedHostNames
brokerProxyAllowedIPAddresses brokerProxyAllowedTargetPorts brokerProxyConnectTimeoutMs brokerProxyReadTimeoutMs
brokerServiceURL brokerServiceURLTLS brokerWebServiceURL brokerWebServiceURLTLS forwardAuthorizationCredentials
httpInputMaxReplayBufferSize httpProxyTimeout httpServerIdleTimeout keepAliveIntervalSeconds maxConcurrentHttpRequests
maxConcurrentInboundConnections maxConcurrentInboundConnectionsPerIp maxConcurrentLookupRequests
maxHttpServerConnections metadataStoreSessionTimeoutMillis metadataStoreUrl openIDAcceptedTimeLeewaySeconds
openIDAllowedAudiences openIDAllowedTokenIssuers openIDCacheExpirationSeconds openIDCacheRefreshAfterWriteSeconds
openIDHttpConnectionTimeoutMillis openIDHttpReadTimeoutMillis openIDKeyIdCacheMissRefreshSeconds
openIDRequireIssuersUseHttps openIDRoleClaim openIDTokenIssuerTrustCertsFilePath servicePort servicePortTls
tlsCertificateFilePath tlsCertRefreshCheckDurationSec tlsEnabledWithBroker tlsHostnameVerificationEnabled tlsKeyFilePath
tlsRequireTrustedClientCertOnConnect tlsTrustCertsFilePath tokenAllowedClockSkewSeconds tokenAudience tokenAudienceClaim
tokenAuthClaim tokenPublicAlg tokenPublicKey tokenSecretKey webServicePort webServicePortTls
"""
OF_PULSAR = set(_OF_PULSAR.split())
"""Settings of the proxy of Apache Pulsar."""


def test_keys_when_compared_with_pulsars_then_only_one_is_our_own() -> None:
    assert set(proxy_settings()) == OF_PULSAR | PROPOSED | {"webServiceAllowedHosts"}
    assert not PULSAR_KEYS & set(proxy_settings())
    assert not PROTECTING_KEYS & set(proxy_settings())


def test_brokers_when_several_are_named_then_the_scheme_may_stand_once() -> None:
    config = load_config(
        settings=("brokerServiceURL=pulsar://a:1,b:2,pulsar://c", "brokerWebServiceURL=http://a:8080/,b:8080")
    ).config
    assert config.broker_urls == (BrokerAddress("a", 1), BrokerAddress("b", 2), BrokerAddress("c", 6650))
    assert config.web_urls == ("http://a:8080", "http://b:8080")


def test_brokers_when_tls_is_used_to_them_then_the_keys_for_it_count() -> None:
    settings = (*BROKERS, "tlsEnabledWithBroker=true")
    assert problems(*settings) == (
        "the brokers are not named: give brokerServiceURLTLS=pulsar+ssl://host:port, or "
        "metadataStoreUrl=zk:host:2181 where they register",
        "their web services are not named: give brokerWebServiceURLTLS=https://host:port",
    )
    config = load_config(
        settings=(*settings, "brokerServiceURLTLS=pulsar+ssl://b", "brokerWebServiceURLTLS=https://b:8443")
    ).config
    assert config.broker_urls == (BrokerAddress("b", 6651, tls=True),)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (("brokerServiceURL=b:6650", BROKERS[1]), "brokerServiceURL=b:6650: must be pulsar://host:port"),
        (("brokerServiceURL=pulsar+ssl://b:6651", BROKERS[1]), "brokerServiceURL=pulsar+ssl://b:6651: must be pulsar"),
        ((BROKERS[0], "brokerWebServiceURL=b:8080"), "brokerWebServiceURL=b:8080: must be http://host:port"),
        (("metadataStoreUrl=etcd:x",), "metadataStoreUrl=etcd:x: must begin with zk:"),
        ((*BROKERS, "servicePortTls=0"), "servicePortTls and webServicePortTls need tlsCertificateFilePath"),
        ((*BROKERS, "brokerServiceUrl=x"), "brokerServiceUrl is not a known setting; the nearest is brokerServiceURL"),
        ((*BROKERS, "maxConcurrentLookupRequests=0"), "maxConcurrentLookupRequests=0: must be at least 1"),
        ((*BROKERS, "haProxyProtocolEnabled=true"), "haProxyProtocolEnabled=true: this proxy does not offer it"),
        ((*BROKERS, "authorizationEnabled=true"), "authorizationEnabled=true: the proxy decides nothing about topics"),
        ((*BROKERS, PLUGIN, TOKEN), "brokerClientAuthenticationPlugin needs authenticationEnabled=true"),
        ((*BROKERS, ON, PLUGIN), "brokerClientAuthenticationParameters: the token is missing"),
        ((*BROKERS, ON, FORWARDED), "forwardAuthorizationCredentials=true with authenticationEnabled=true needs"),
        ((*BROKERS, ON, *BY_CERTIFICATE), "brokerClientAuthenticationPlugin=AuthenticationTls needs tlsEnabledWith"),
        ((*BROKERS, "tlsTrustCertsFilePath=/ca.pem"), "tlsTrustCertsFilePath has no effect: no port is inside TLS"),
        ((*BROKERS, "tlsRequireTrustedClientCertOnConnect=true"), "tlsRequireTrustedClientCertOnConnect=true needs"),
    ],
)
def test_settings_when_they_cannot_be_used_then_refused_by_key_and_value(
    settings: tuple[str, ...], problem: str
) -> None:
    assert any(told.startswith(problem) for told in problems(*settings)), problems(*settings)


def test_settings_when_pulsar_knows_more_of_them_then_one_warning_names_all() -> None:
    loaded = load_config(
        file_text="numIOThreads=4\nauthorizationEnabled=false\nproxyLogLevel=1\nbrokerServiceURL=pulsar://b\n"
        "brokerWebServiceURL=http://b\nkinitCommand=\n"
    )
    (warning,) = loaded.warnings
    assert warning.startswith("proxy.conf: numIOThreads, authorizationEnabled, proxyLogLevel are settings of Pulsar")


def test_defaults_when_compared_with_pulsars_then_limits_are_the_same() -> None:
    config = ProxyConfig()
    assert (config.max_concurrent_inbound_connections, config.max_concurrent_lookup_requests) == (10_000, 50_000)
    assert (config.broker_proxy_connect_timeout_ms, config.broker_proxy_read_timeout_ms) == (10_000, 75_000)
    assert (config.max_http_server_connections, config.max_concurrent_http_requests) == (2048, 1024)


def test_proxy_when_it_shows_a_certificate_then_to_brokers_inside_tls() -> None:
    urls = ("brokerServiceURLTLS=pulsar+ssl://b", "brokerWebServiceURLTLS=https://b", "tlsEnabledWithBroker=true")
    config = load_config(settings=(*urls, ON, *BY_CERTIFICATE)).config
    assert (config.broker_tls.certificate_path, config.broker_tls.key_path) == ("/c.pem", "/k.pem")
