"""The sink without a JVM, on our broker."""

import pytest

from interpulse.testing import InProcessBroker
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


@pytest.fixture
def cluster(broker):
    return Cluster(broker.service_url, broker.web_url)


async def test_messages_are_written_with_the_schema_of_their_topic(cluster):
    await write_messages_with_the_schema_of_their_topic(cluster)


async def test_entries_are_written_with_schemas_of_their_source(cluster, tmp_path):
    with InProcessBroker(tmp_path) as source:
        await write_entries_with_schemas_of_their_source(cluster, Cluster(source.service_url, source.web_url))


async def test_entries_are_written_only_to_topics_that_are_there(cluster):
    await write_entries_only_to_topics_that_are_there(cluster)


async def test_topics_that_are_not_there_come_into_being_as_the_policy_or_the_option_says(cluster):
    await write_to_topics_that_are_not_there(cluster)


async def test_what_is_too_large_is_refused_and_the_rest_goes_on(cluster):
    await refuse_what_is_too_large_for_the_broker(cluster)


async def test_exactly_once_is_refused_where_nothing_de_duplicates(cluster):
    await refuse_exactly_once_without_deduplication(cluster)


async def test_rows_are_written_by_the_schema_of_their_topic_or_of_their_columns(cluster):
    await write_rows_by_schemas(cluster)
