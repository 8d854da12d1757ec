"""Observable instruments over the metrics of a broker.

An exporter calls each instrument separately, in a thread of its own. The first call has the event loop read all values,
and the other instruments answer from that reading.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, Observation

from interpulse import __version__
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.instruments import Instruments
from interpulse.broker.live.registry.topic_tasks import AnyTopic, topics_in_turns
from interpulse.broker.replication.replication_survey import ReplicationSurvey
from interpulse.broker.telemetry.topic_metrics import (
    TOPIC_INSTRUMENTS,
    Attributes,
    Instrument,
    MetricValues,
    TopicMetrics,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider

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
