"""The refusal of topics with transactions, which only brokers of Apache Pulsar can load."""

from __future__ import annotations

from interpulse.broker import metadata_paths as keys
from interpulse.model.errors import NotAllowed
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataStore
from interpulse.storage.cursors import read_cursor_names


async def refuse_transactions(metadata: MetadataStore, topic: TopicName) -> None:
    """Raise NotAllowed for a topic with transactions, before it is changed.

    Loaded here, it would deliver messages of aborted transactions and lose acknowledgements of others.
    """
    subscriptions = await read_cursor_names(metadata, topic.log_name)
    records = [keys.topic_record(transaction_topic) for transaction_topic in topic.transaction_topics(subscriptions)]
    if topic.base.is_transaction_internal or await metadata.get_many(records):
        raise NotAllowed(
            f"Topic {topic} cannot be loaded: namespace {topic.namespace_name} has transactions, which this broker "
            f"does not offer; unload its bundles to brokers of Apache Pulsar"
        )
