"""Settings of services, their TLS and their listeners: the services that they make, and contradictions."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.rules.listeners import plan_listeners
from interpulse.rules.tls import TlsOffer, plan_offer
from interpulse.serving.settings import words
from interpulse.serving.tls import ServerTls


def binary_tls(config: BrokerConfig) -> ServerTls:
    """Return the TLS of ``brokerServicePortTls``. The settings must have no problems."""
    return _server_tls(config, _binary_offer(config))


def web_tls(config: BrokerConfig) -> ServerTls:
    """Return the TLS of ``webServicePortTls``. The settings must have no problems."""
    return _server_tls(config, _web_offer(config))


def tls_problems(config: BrokerConfig) -> list[str]:
    """Return one sentence per contradiction between settings that are valid one by one."""
    return [
        *_problems_of_ports(config),
        *_problems_of_offers(config),
        *(_problems_inside_tls(config) if _is_offered(config) else _idle(config)),
        *_problems_of_own_calls(config),
    ]


def _is_offered(config: BrokerConfig) -> bool:
    return config.broker_service_port_tls is not None or config.web_service_port_tls is not None


def _server_tls(config: BrokerConfig, offer: TlsOffer) -> ServerTls:
    return ServerTls(
        config.tls_certificate_file_path,
        config.tls_key_file_path,
        config.tls_trust_certs_file_path,
        config.tls_require_trusted_client_cert_on_connect,
        offer,
    )


def _binary_offer(config: BrokerConfig) -> TlsOffer:
    return plan_offer(words(config.tls_protocols), words(config.tls_ciphers))


def _web_offer(config: BrokerConfig) -> TlsOffer:
    return plan_offer(
        words(config.web_service_tls_protocols or config.tls_protocols),
        words(config.web_service_tls_ciphers or config.tls_ciphers),
    )


def _problems_of_ports(config: BrokerConfig) -> Iterator[str]:
    if config.broker_service_port is None and config.broker_service_port_tls is None:
        yield "brokerServicePort and brokerServicePortTls are both empty, so no client could connect: give one of them"
    if config.web_service_port is None and config.web_service_port_tls is None:
        yield "webServicePort and webServicePortTls are both empty, so nothing could be administered: give one of them"


def _problems_of_offers(config: BrokerConfig) -> Iterator[str]:
    try:
        _binary_offer(config)
    except ValueError as error:
        yield f"tlsCiphers={config.tls_ciphers}: {error}"
        return
    try:
        _web_offer(config)
    except ValueError as error:
        yield f"webServiceTlsCiphers={config.web_service_tls_ciphers or config.tls_ciphers}: {error}"


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


def _idle(config: BrokerConfig) -> Iterator[str]:
    """Yield the settings of TLS that have no effect because no port uses it."""
    values = {
        "tlsCertificateFilePath": config.tls_certificate_file_path,
        "tlsKeyFilePath": config.tls_key_file_path,
        "tlsTrustCertsFilePath": config.tls_trust_certs_file_path,
        "tlsRequireTrustedClientCertOnConnect": config.tls_require_trusted_client_cert_on_connect,
        "tlsCiphers": config.tls_ciphers,
        "webServiceTlsCiphers": config.web_service_tls_ciphers,
        "webServiceTlsProtocols": config.web_service_tls_protocols,
    }
    idle = [key for key, value in values.items() if value]
    if idle:
        yield (
            f"{', '.join(idle)}: no port is inside TLS. Give brokerServicePortTls and webServicePortTls, or take "
            f"{'it' if len(idle) == 1 else 'them'} out"
        )


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


def listener_problems(config: BrokerConfig) -> Iterator[str]:
    """Yield one sentence per contradiction."""
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
