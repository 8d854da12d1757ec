"""Settings of the broker, read from a file, the environment and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Unpack

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS, TLS_KEYS
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import check_entity_name
from interpulse.rules.listeners import plan_listeners
from interpulse.serving.settings import LoadedConfig, Program, Sources

_TLS_SETTINGS: Final = (
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
    "tlsTrustCertsFilePath",
    "tlsRequireTrustedClientCertOnConnect",
    "tlsCiphers",
    "webServiceTlsCiphers",
    "webServiceTlsProtocols",
)
"""Settings without effect unless a port is inside TLS. Their defaults are empty or false."""


def _refused_alone(key: str, value: str) -> str:
    """Return the reason to refuse the stores of a cluster in a standalone broker."""
    if key != "metadataStoreUrl" or not value.startswith("zk:"):
        return ""
    return (
        "a standalone broker keeps everything in its data directory. "
        "Start a broker of a cluster with `interpulse broker`"
    )


def _problems(config: BrokerConfig) -> Iterator[str]:
    """Yield one sentence per contradiction between settings that are valid one by one."""
    yield from _problems_of_tls(config)
    yield from _problems_of_own_calls(config)
    yield from _problems_of_listeners(config)
    try:
        check_entity_name("Cluster", config.cluster_name)
    except PreconditionFailed as error:
        yield f"clusterName: {error}"
    low, high = config.pulsar_channel_write_buffer_low_water_mark, config.pulsar_channel_write_buffer_high_water_mark
    if low > high:
        yield (
            f"pulsarChannelWriteBufferLowWaterMark={low}: must be at most pulsarChannelWriteBufferHighWaterMark={high}"
        )


def _problems_of_tls(config: BrokerConfig) -> Iterator[str]:
    if config.broker_service_port is None and config.broker_service_port_tls is None:
        yield "brokerServicePort and brokerServicePortTls are both empty, so no client could connect: give one of them"
    if config.web_service_port is None and config.web_service_port_tls is None:
        yield "webServicePort and webServicePortTls are both empty, so nothing could be administered: give one of them"
    try:
        setting = f"tlsCiphers={config.tls_ciphers}"
        _ = config.binary_tls
        setting = f"webServiceTlsCiphers={config.web_service_tls_ciphers or config.tls_ciphers}"
        _ = config.web_tls
    except ValueError as error:
        yield f"{setting}: {error}"
    if config.broker_service_port_tls is not None or config.web_service_port_tls is not None:
        yield from _problems_inside_tls(config)
        return
    texts = config.as_text()
    idle = [key for key in _TLS_SETTINGS if texts[key] not in ("", "false")]
    if idle:
        yield (
            f"{', '.join(idle)}: no port is inside TLS. Give brokerServicePortTls and webServicePortTls, or take "
            f"{'it' if len(idle) == 1 else 'them'} out"
        )


def _problems_inside_tls(config: BrokerConfig) -> Iterator[str]:
    if not (config.tls_certificate_file_path and config.tls_key_file_path):
        yield (
            "brokerServicePortTls and webServicePortTls need tlsCertificateFilePath and tlsKeyFilePath (PEM files); "
            "`interpulse standalone --tls` makes some for a trial"
        )
    if config.tls_require_trusted_client_cert_on_connect and not config.tls_trust_certs_file_path:
        yield (
            "tlsRequireTrustedClientCertOnConnect=true needs tlsTrustCertsFilePath, a PEM file of the authorities that "
            "sign the certificates of clients"
        )
    if config.broker_service_port_tls is None and config.web_service_tls_ciphers and config.tls_ciphers:
        yield "tlsCiphers has no effect: it is for brokerServicePortTls, which is empty"
    if config.web_service_port_tls is None and (config.web_service_tls_ciphers or config.web_service_tls_protocols):
        yield "webServiceTlsCiphers and webServiceTlsProtocols have no effect: they are for webServicePortTls"


def _problems_of_own_calls(config: BrokerConfig) -> Iterator[str]:
    if config.broker_client_tls_enabled and (
        config.broker_service_port_tls is None or config.web_service_port_tls is None
    ):
        yield "brokerClientTlsEnabled=true needs brokerServicePortTls and webServicePortTls, which are called then"
    if bool(config.broker_client_certificate_file_path) != bool(config.broker_client_key_file_path):
        yield "brokerClientCertificateFilePath and brokerClientKeyFilePath belong together: name both"
    calls_inside = config.broker_client_tls_enabled or None in (config.broker_service_port, config.web_service_port)
    if not calls_inside and (config.broker_client_trust_certs_file_path or config.broker_client_certificate_file_path):
        yield (
            "brokerClientTrustCertsFilePath and brokerClientCertificateFilePath have no effect without "
            "brokerClientTlsEnabled=true"
        )


def _problems_of_listeners(config: BrokerConfig) -> Iterator[str]:
    try:
        listeners = plan_listeners(config.advertised_listeners, config.internal_listener_name)
    except ValueError as error:
        yield f"advertisedListeners={config.advertised_listeners}: {error}"
        return
    if listeners.by_name and config.advertised_address:
        yield (
            "advertisedListeners and advertisedAddress exclude each other: name the host in the internal listener, and "
            "take advertisedAddress out"
        )
    internal = listeners.by_name.get(listeners.internal)
    if internal is None:
        return
    for url, port, key in (
        (internal.service_url, config.broker_service_port, "brokerServicePort"),
        (internal.service_url_tls, config.broker_service_port_tls, "brokerServicePortTls"),
        (internal.web_url, config.web_service_port, "webServicePort"),
        (internal.web_url_tls, config.web_service_port_tls, "webServicePortTls"),
    ):
        if url and port is None:
            yield f"advertisedListeners: the internal listener has {url}, and {key} is empty: nothing listens there"


_IN_CLUSTER: Final = Program(
    name="broker",
    config=BrokerConfig,
    pulsar_keys=PULSAR_KEYS,
    problems=_problems,
    protecting_keys=TLS_KEYS,
    address_keys=frozenset({"bindAddresses"}),
    refusal=(
        "this broker does not offer it. Take it out: services inside TLS are brokerServicePortTls and "
        "webServicePortTls at advertisedAddress, their certificates are PEM files (tlsCertificateFilePath, "
        "tlsKeyFilePath, tlsTrustCertsFilePath), and each that a client shows is checked"
    ),
)
_ALONE: Final = replace(_IN_CLUSTER, acts_on=lambda setting: not setting.cluster, refused=_refused_alone)


def load_config(*, in_cluster: bool = False, **sources: Unpack[Sources]) -> LoadedConfig[BrokerConfig]:
    """Merge all sources, see `Program.load`; for a broker with the stores of a cluster if ``in_cluster``."""
    return (_IN_CLUSTER if in_cluster else _ALONE).load(**sources)
