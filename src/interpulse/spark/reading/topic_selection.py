"""Topics that a read selects, and their schemas, from the source cluster. Nothing is created."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Final

from interpulse.client.session import Session
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.spark.options.option import OptionError
from interpulse.spark.processes.process_client import process_portal, session_for
from interpulse.spark.reading.read_options import ReadOptions

log = logging.getLogger(__name__)

CONCURRENT_MAX: Final = 1000
"""Concurrent requests."""

_LITERAL: Final = re.compile(r"(?:persistent://)?([A-Za-z0-9_\-=:.]+/[A-Za-z0-9_\-=:.]+)/")


async def selected_topics(session: Session, options: ReadOptions) -> list[TopicName]:
    """Return the base names, and the partitions that are named by themselves."""
    named = options.topics or options.assigned
    if named:
        topics = [TopicName.parse(name) for name in named]
    else:
        topics = await _listed(session, _namespaces(options, str(options.topics_pattern)))
    return [topic for topic in topics if options.names(topic)]


async def _listed(session: Session, namespaces: Sequence[NamespaceName]) -> list[TopicName]:
    """Return the base names of all topics."""
    listed = await asyncio.gather(*(session.lookup.topics_of_namespace(namespace) for namespace in namespaces))
    return sorted({TopicName.parse(name).base for topics in listed for name in topics.names}, key=str)


def _namespaces(options: ReadOptions, pattern: str) -> Sequence[NamespaceName]:
    literal = _LITERAL.match(pattern)
    if options.namespaces:
        return options.namespaces
    if literal is None:
        raise OptionError(
            f"topicsPattern {pattern!r} does not begin with a literal tenant/namespace/: list them with namespaces"
        )
    return [NamespaceName.parse(literal[1])]


def schemas_of_topics(options: ReadOptions) -> dict[str, SchemaInfo | None]:
    """Return the newest schema of each topic, None if it has none. Return nothing if the options ask for bytes.

    Raises TopicNotFound.
    """
    return process_portal().call(lambda: _schemas(options)) if options.is_typed and not options.topics_file else {}


async def _schemas(options: ReadOptions) -> dict[str, SchemaInfo | None]:
    session = await session_for(options.service_url, options.operation_timeout_ms, options.access)
    topics = {topic.base for topic in await selected_topics(session, options)}
    slots = asyncio.Semaphore(CONCURRENT_MAX)

    async def schema(topic: TopicName) -> SchemaInfo | None:
        async with slots:
            try:
                await session.lookup.partitions(topic, create=False)  # refuses what is not there
            except TopicNotFound:
                if not options.awaits_topics:
                    raise
                log.warning("topic does not exist yet, its payloads are read as bytes topic=%s", topic)
                return None
            found = await session.lookup.schema(topic)
        return None if found is None else found.schema

    found = await asyncio.gather(*(schema(topic) for topic in topics))
    return {str(topic): schema for topic, schema in zip(topics, found, strict=True)}
