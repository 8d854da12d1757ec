"""Settings of the broker, read from a file, the environment and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.listener_settings import listener_problems
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS, TLS_KEYS
from interpulse.broker.config.tls_settings import tls_problems
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import check_entity_name
from interpulse.serving.settings import ConfigError
from interpulse.serving.settings_sources import LoadedConfig, Program


def _refused_alone(key: str, value: str) -> str:
    """Return the reason to refuse the stores of a cluster in a standalone broker."""
    if key != "metadataStoreUrl" or not value.startswith("zk:"):
        return ""
    return (
        "a standalone broker keeps everything in its data directory. "
        "Start a broker of a cluster with `interpulse broker`"
    )


def _problems_of_names(config: BrokerConfig) -> Iterator[str]:
    try:
        check_entity_name("Cluster", config.cluster_name)
    except PreconditionFailed as error:
        yield f"clusterName: {error}"


def _problems_of_limits(config: BrokerConfig) -> Iterator[str]:
    low, high = config.pulsar_channel_write_buffer_low_water_mark, config.pulsar_channel_write_buffer_high_water_mark
    if low > high:
        yield (
            f"pulsarChannelWriteBufferLowWaterMark={low}: must be at most pulsarChannelWriteBufferHighWaterMark={high}"
        )


_IN_CLUSTER: Final = Program(
    name="broker",
    config=BrokerConfig,
    pulsar_keys=PULSAR_KEYS,
    protecting_keys=TLS_KEYS,
    address_keys=frozenset({"bindAddresses"}),
    refusal=(
        "this broker does not offer it. Take it out: services inside TLS are brokerServicePortTls and "
        "webServicePortTls at advertisedAddress, their certificates are PEM files (tlsCertificateFilePath, "
        "tlsKeyFilePath, tlsTrustCertsFilePath), and each that a client shows is checked"
    ),
)
_ALONE: Final = replace(_IN_CLUSTER, acts_on=lambda setting: not setting.cluster, refused=_refused_alone)


def load_config(
    *,
    file_text: str = "",
    file_name: str = "broker.conf",
    environment: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    options: Mapping[str, str] | None = None,
    in_cluster: bool = False,
) -> LoadedConfig[BrokerConfig]:
    """Merge all sources, see `Program.load`. Raise ConfigError with every problem.

    ``in_cluster``: the broker uses the stores of a cluster.
    """
    loaded = (_IN_CLUSTER if in_cluster else _ALONE).load(
        file_text=file_text, file_name=file_name, environment=environment, settings=settings, options=options
    )
    config = loaded.config
    problems = [
        *tls_problems(config),
        *listener_problems(config),
        *_problems_of_names(config),
        *_problems_of_limits(config),
    ]
    if problems:
        raise ConfigError(*problems)
    return loaded
