"""PARTITIONED_METADATA and GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from interpulse.model.errors import NamespaceNotFound, NotFound
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import topics_hash

if TYPE_CHECKING:
    from interpulse.broker.binary.connection import ClientConnection

__all__ = ["on_get_topics_of_namespace", "on_partitioned_metadata"]

_DOMAINS_BY_MODE: Final[dict[int, tuple[Domain, ...]]] = {
    pb.CommandGetTopicsOfNamespace.PERSISTENT: (PERSISTENT,),
    pb.CommandGetTopicsOfNamespace.NON_PERSISTENT: (NON_PERSISTENT,),
    pb.CommandGetTopicsOfNamespace.ALL: (PERSISTENT, NON_PERSISTENT),
}


async def on_partitioned_metadata(connection: ClientConnection, request: pb.CommandPartitionedTopicMetadata) -> None:
    """PIP-344: ``metadata_auto_creation_enabled`` is true unless the client says otherwise.

    A topic that is not there is told by the code alone, without a message, as Pulsar does.
    """
    topic, create = TopicName.parse(request.topic), request.metadata_auto_creation_enabled
    with connection.rooms.permits:
        try:
            partitions = await connection.rooms.lifecycle.partitions(topic, create=create)
        except NotFound as error:
            message = str(error) if create and isinstance(error, NamespaceNotFound) else ""
            answer = commands.partitioned_metadata_error(request.request_id, error.wire_code, message)
        else:
            answer = commands.partitioned_metadata_response(request.request_id, partitions)
    connection.output.send(answer)


async def on_get_topics_of_namespace(connection: ClientConnection, request: pb.CommandGetTopicsOfNamespace) -> None:
    """The whole list, unfiltered; only "nothing changed" when the client's hash still holds.

    A namespace that does not exist has no topics.
    """
    topics = await _topics(connection, NamespaceName.parse(request.namespace), _DOMAINS_BY_MODE[request.mode])
    current = topics_hash(topics)
    changed = request.topics_hash != current
    connection.output.send(
        commands.get_topics_of_namespace_response(
            request.request_id, topics if changed else (), topics_hash=current, changed=changed
        )
    )


async def _topics(connection: ClientConnection, namespace: NamespaceName, domains: tuple[Domain, ...]) -> list[str]:
    names: list[str] = []
    try:
        for domain in domains:
            listed = await connection.rooms.lifecycle.list_topics(namespace, domain, include_system=False)
            names += map(str, listed)
    except NamespaceNotFound:
        return []
    return names
