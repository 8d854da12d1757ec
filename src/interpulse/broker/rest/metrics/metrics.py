"""The page ``/metrics`` for Prometheus, with Pulsar's names where Pulsar has them."""

from __future__ import annotations

import asyncio
from typing import Final

from interpulse.broker.rest.http.call import Answer, Call, Route
from interpulse.broker.rest.metrics.metrics_broker import write_broker
from interpulse.broker.rest.metrics.metrics_replication import write_replication
from interpulse.broker.rest.metrics.metrics_topics import write_topics
from interpulse.model.operations import Brokers
from interpulse.serving.exposition import CONTENT_TYPE, Exposition


async def get_metrics(call: Call) -> Answer:
    context, page = call.context, Exposition()
    cluster = context.namespaces.local_cluster
    config = context.dynamic.config
    survey = await context.replication_survey.look()
    await write_topics(
        page,
        context.registry.topics(),
        cluster,
        topic_level=config.expose_topic_level_metrics_in_prometheus,
        consumer_level=config.expose_consumer_level_metrics_in_prometheus,
        survey=survey,
    )
    write_broker(page, context.instruments, cluster, context.this_broker.broker_id.rpartition(":")[0])
    write_replication(page, context.replication_survey, survey, cluster)
    process = await asyncio.to_thread(_process_metrics)  # loading the library takes longer than a turn
    return Answer(200, await page.render_in_turns() + process, CONTENT_TYPE)


def _process_metrics() -> bytes:
    """Return CPU, memory and file metrics of the process. The library is loaded with the first scrape."""
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import generate_latest

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return generate_latest(registry)


ROUTES: Final = (Route(Brokers.GET_METRICS, get_metrics),)
