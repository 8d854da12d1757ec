"""Observable instruments over the metrics of a broker.

An exporter calls each instrument separately, in a thread of its own. The first call has the event loop read all values,
and the other instruments answer from that reading.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from opentelemetry.metrics import CallbackOptions, Observation

from interpulse import __version__
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.instruments import Instruments
from interpulse.broker.live.metrics import Measured
from interpulse.broker.live.registry.topic_tasks import AnyTopic, topics_in_turns
from interpulse.broker.replication.replication_status import ReplicationSurvey
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import DESTINATION_STORAGE, MESSAGE_AGE

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider

Attributes = Mapping[str, str | int]
MetricValues = Mapping[str, list[tuple[float, Attributes]]]
"""Values by metric name, each with its attributes."""


class Instrument(NamedTuple):
    """The declaration of one metric."""

    name: str
    kind: Literal["counter", "updown", "gauge"]
    unit: str
    text: str


_CONNECTIONS: Final = "pulsar.broker.connection.count"
_CREATED: Final = "pulsar.broker.connection.create.operation.count"
_LOOKUPS: Final = "pulsar.broker.request.topic.lookup.concurrent."
_LOADS: Final = "pulsar.broker.topic.load.concurrent.usage"
BROKER_INSTRUMENTS: Final = (
    Instrument(_CONNECTIONS, "updown", "{connection}", "Connections of the binary protocol, by status."),
    Instrument(_CREATED, "counter", "{operation}", "Clients let in or refused."),
    Instrument(f"{_LOOKUPS}usage", "updown", "{operation}", "Lookups that hold a permit."),
    Instrument(f"{_LOOKUPS}limit", "updown", "{operation}", "Permits there are (maxConcurrentLookupRequest)."),
    Instrument(_LOADS, "updown", "{operation}", "Topics being loaded."),
)


_TOPIC: Final = "pulsar.broker.topic."
_REPLICATION: Final = "pulsar.broker.replication."
TOPIC_INSTRUMENTS: Final = (
    Instrument(f"{_TOPIC}subscription.count", "updown", "{subscription}", "Subscriptions."),
    Instrument(f"{_TOPIC}producer.count", "updown", "{producer}", "Producers connected."),
    Instrument(f"{_TOPIC}consumer.count", "updown", "{consumer}", "Consumers connected."),
    Instrument(f"{_TOPIC}message.incoming.count", "counter", "{message}", "Messages published."),
    Instrument(f"{_TOPIC}message.incoming.size", "counter", "{byte}", "Bytes published."),
    Instrument(f"{_TOPIC}message.outgoing.count", "counter", "{message}", "Messages delivered."),
    Instrument(f"{_TOPIC}message.outgoing.size", "counter", "{byte}", "Bytes delivered."),
    Instrument(f"{_TOPIC}storage.size", "updown", "{byte}", "Bytes stored."),
    Instrument(f"{_TOPIC}storage.logical.size", "updown", "{byte}", "Bytes stored, without copies."),
    Instrument(f"{_TOPIC}storage.backlog.size", "updown", "{byte}", "Bytes that some subscription waits for."),
    Instrument(f"{_TOPIC}storage.offloaded.size", "updown", "{byte}", "Always 0: there is no tiered storage."),
    Instrument(f"{_TOPIC}subscription.delayed", "updown", "{message batch}", "Messages that wait for their time."),
    Instrument(f"{_TOPIC}publish.rate.limit", "counter", "{event}", "Clients not read from, by the publish rate."),
    Instrument(f"{_TOPIC}storage.backlog.quota.limit.size", "gauge", "{byte}", "Bytes that may be unacknowledged."),
    Instrument(f"{_TOPIC}storage.backlog.quota.limit.time", "gauge", "{second}", "Age that a backlog may have."),
    Instrument(f"{_TOPIC}storage.backlog.age", "gauge", "{second}", "Age of the oldest unacknowledged message."),
    Instrument(f"{_TOPIC}storage.backlog.quota.exceeded.eviction.count", "counter", "{eviction}", "Evictions."),
    Instrument(f"{_TOPIC}compaction.removed.event.count", "counter", "{event}", "Messages left out by compaction."),
    Instrument(f"{_TOPIC}compaction.succeed.count", "counter", "{event}", "Compactions that ended well."),
    Instrument(f"{_TOPIC}compaction.failed.count", "counter", "{event}", "Compactions that failed."),
    Instrument(f"{_TOPIC}compaction.compacted.entries.count", "updown", "{entry}", "Entries of the compacted ledger."),
    Instrument(f"{_TOPIC}compaction.compacted.entries.size", "updown", "{byte}", "Bytes of the compacted ledger."),
    Instrument(f"{_REPLICATION}message.backlog", "updown", "{message}", "Entries the remote cluster does not have."),
    Instrument(f"{_REPLICATION}connected.count", "updown", "{subscriber}", "1 while the topic is copied."),
    Instrument(f"{_REPLICATION}message.age", "gauge", "{second}", "Age of the oldest message that is not there yet."),
)


class TopicMetrics:
    """A collector of the metrics of many topics. ``by_namespace`` adds them up and leaves gauges out."""

    def __init__(self, *, by_namespace: bool) -> None:
        self.values: dict[str, list[tuple[float, Attributes]]] = {
            instrument.name: [] for instrument in TOPIC_INSTRUMENTS
        }
        self._by_namespace = by_namespace
        self._sums: Counter[tuple[str, tuple[tuple[str, str | int], ...]]] = Counter()
        self._gauges = {instrument.name for instrument in TOPIC_INSTRUMENTS if instrument.kind == "gauge"}

    def add(self, topic: TopicName, measured: Measured) -> None:
        """Add all metrics of one topic."""
        which = _attributes(topic, by_namespace=self._by_namespace)
        self._add_plain(which, measured)
        self._add_limits(which, measured)
        self._add_compaction(which, measured)
        for remote, way in measured.replication.items():
            there = which | {"pulsar.replication.remote.cluster.name": remote}
            self._put(f"{_REPLICATION}message.backlog", way.backlog, there)
            self._put(f"{_REPLICATION}connected.count", int(way.connected), there)
            self._put(f"{_REPLICATION}message.age", way.delay_seconds, there)

    def _add_plain(self, which: dict[str, str | int], measured: Measured) -> None:
        topic = measured.topic
        delayed = sum(subscription.delayed for subscription in measured.subscriptions.values())
        for name, value in (
            ("subscription.count", topic.subscriptions),
            ("producer.count", topic.producers),
            ("consumer.count", topic.consumers),
            ("message.incoming.count", topic.messages_in),
            ("message.incoming.size", topic.bytes_in),
            ("message.outgoing.count", topic.messages_out),
            ("message.outgoing.size", topic.bytes_out),
            ("storage.size", topic.storage_bytes),
            ("storage.logical.size", topic.logical_bytes),
            ("storage.backlog.size", topic.backlog_bytes),
            ("storage.offloaded.size", topic.offloaded_bytes),
            ("subscription.delayed", delayed),
        ):
            self._put(_TOPIC + name, value, which)

    def _add_limits(self, which: dict[str, str | int], measured: Measured) -> None:
        limits = measured.limits
        if limits is None:
            return
        self._put(f"{_TOPIC}publish.rate.limit", limits.publish_throttled, which)
        for name, value in (
            ("quota.limit.size", limits.quota_bytes),
            ("quota.limit.time", limits.quota_seconds),
            ("age", limits.backlog_age_seconds),
        ):
            if value >= 0:  # -1 = there is none
                self._put(f"{_TOPIC}storage.backlog.{name}", value, which)
        for quota_type, word in ((DESTINATION_STORAGE, "size"), (MESSAGE_AGE, "time")):
            evictions = limits.evictions.get(quota_type, 0)
            of_type = which | {"pulsar.backlog.quota.type": word}
            self._put(f"{_TOPIC}storage.backlog.quota.exceeded.eviction.count", evictions, of_type)

    def _add_compaction(self, which: dict[str, str | int], measured: Measured) -> None:
        compaction = measured.compaction
        if compaction is None:
            return
        for name, value in (
            ("removed.event.count", compaction.removed),
            ("succeed.count", compaction.succeeded),
            ("failed.count", compaction.failed),
            ("compacted.entries.count", compaction.entries),
            ("compacted.entries.size", compaction.size),
        ):
            self._put(f"{_TOPIC}compaction.{name}", value, which)

    def _put(self, name: str, value: float, which: dict[str, str | int]) -> None:
        if not self._by_namespace:
            self.values[name].append((value, which))
        elif name not in self._gauges:
            self._sums[name, tuple(which.items())] += value  # type: ignore[assignment]  # sizes and counts are integers

    def finish(self) -> dict[str, list[tuple[float, Attributes]]]:
        """Return the metrics. Do not call `add` afterwards."""
        for (name, which), value in self._sums.items():
            self.values[name].append((value, dict(which)))
        return self.values


def _attributes(topic: TopicName, *, by_namespace: bool) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "pulsar.domain": topic.domain,
        "pulsar.tenant": topic.tenant,
        "pulsar.namespace": str(topic.namespace_name),
    }
    if not by_namespace:
        attributes["pulsar.topic"] = str(topic.base)
        if topic.partition_index >= 0:
            attributes["pulsar.partition.index"] = topic.partition_index
    return attributes


def broker_metrics(instruments: Instruments, *, lookups_max: int) -> MetricValues:
    """Return the metrics that belong to no single topic."""
    connections = instruments.connections()
    status, outcome = "pulsar.connection.status", "pulsar.connection.create.operation.status"
    nothing: Attributes = {}
    return {
        _CONNECTIONS: [
            (connections.active, {status: "active"}),
            (connections.created, {status: "open"}),
            (connections.created - connections.active, {status: "close"}),
        ],
        _CREATED: [(connections.accepted, {outcome: "success"}), (connections.refused, {outcome: "failure"})],
        f"{_LOOKUPS}usage": [(instruments.lookups_pending(), nothing)],
        f"{_LOOKUPS}limit": [(lookups_max, nothing)],
        _LOADS: [(instruments.topic_loads.under_way, nothing)],
    }


_log = logging.getLogger(__name__)

_SCOPE: Final = "org.apache.pulsar.broker"  # Pulsar's scope, so that its views and dashboards work
_TOPICS_MAX: Final = 20_000  # limit for metrics per topic, as in rest/metrics
_READING_SECONDS_MAX: Final = 30.0


class ExportedMetrics:
    """The instruments of one broker. Create and close them in its event loop."""

    def __init__(
        self,
        provider: MeterProvider,
        *,
        topics: Callable[[], Sequence[AnyTopic]],
        instruments: Instruments,
        config: Callable[[], BrokerConfig],
        survey: ReplicationSurvey,
    ) -> None:
        self._topics = topics
        self._instruments = instruments
        self._config = config
        self._survey = survey
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._values: MetricValues = {}
        self._asked: set[str] = set()
        meter = provider.get_meter(_SCOPE, __version__)
        for instrument in (*BROKER_INSTRUMENTS, *TOPIC_INSTRUMENTS):
            _create(meter, instrument, partial(self._observe, instrument.name))

    def close(self) -> None:
        """Observe nothing from now on."""
        self._loop = None

    def _observe(self, name: str, options: CallbackOptions) -> Iterable[Observation]:
        """Return the values of one metric. Runs in a thread of the exporter.

        An instrument that already used the latest reading triggers a new one.
        """
        if name in self._asked or not self._values:
            self._values, self._asked = self._read_in_loop(), set()
        self._asked.add(name)
        return [Observation(value, attributes) for value, attributes in self._values.get(name, ())]

    def _read_in_loop(self) -> MetricValues:
        loop = self._loop
        if loop is None or loop.is_closed():
            return {}
        reading = asyncio.run_coroutine_threadsafe(self._read(), loop)
        try:
            return reading.result(_READING_SECONDS_MAX)
        except (concurrent.futures.CancelledError, TimeoutError):
            reading.cancel()
            _log.warning("metrics for OpenTelemetry could not be read seconds_max=%s", _READING_SECONDS_MAX)
            return {}

    async def _read(self) -> MetricValues:
        config, topics = self._config(), self._topics()
        survey = await self._survey.look()
        one_by_one = config.expose_topic_level_metrics_in_prometheus and len(topics) <= _TOPICS_MAX
        collected = TopicMetrics(by_namespace=not one_by_one)
        async for topic in topics_in_turns(topics):
            measured = topic.measure().with_status(str(topic.name), survey.replicating, survey.delays)
            collected.add(topic.name, measured)
        of_broker = broker_metrics(self._instruments, lookups_max=config.max_concurrent_lookup_request)
        return {**collected.finish(), **of_broker}


def _create(meter: Meter, instrument: Instrument, observe: Callable[[CallbackOptions], Iterable[Observation]]) -> None:
    create = {
        "counter": meter.create_observable_counter,
        "updown": meter.create_observable_up_down_counter,
        "gauge": meter.create_observable_gauge,
    }[instrument.kind]
    create(instrument.name, [observe], instrument.unit, instrument.text)
