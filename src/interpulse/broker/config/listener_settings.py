"""Contradictions in the settings of listeners."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.rules.listeners import plan_listeners


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
