"""What the sink writes to topics with schemas, on a real Pulsar."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.sink import (
    refuse_exactly_once_without_deduplication,
    refuse_what_is_too_large_for_the_broker,
    write_entries_only_to_topics_that_are_there,
    write_entries_with_schemas_of_their_source,
    write_messages_with_the_schema_of_their_topic,
    write_rows_by_schemas,
    write_to_topics_that_are_not_there,
)
from tests.scenarios.spark_times import read_between_times

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_sink_on_a_real_pulsar_that_wants_schemas(real_pulsar: Address, tmp_path: Path) -> None:
    cluster = Cluster(real_pulsar.service_url, real_pulsar.web_url)
    await write_messages_with_the_schema_of_their_topic(cluster)
    await write_rows_by_schemas(cluster)
    await write_entries_only_to_topics_that_are_there(cluster)
    await write_to_topics_that_are_not_there(cluster)
    await refuse_what_is_too_large_for_the_broker(cluster)
    await refuse_exactly_once_without_deduplication(cluster)
    with InProcessBroker(tmp_path) as source:
        await write_entries_with_schemas_of_their_source(cluster, Cluster(source.service_url, source.web_url))


async def test_batch_read_between_times_on_a_real_pulsar(real_pulsar: Address) -> None:
    await read_between_times(Cluster(real_pulsar.service_url, real_pulsar.web_url))
