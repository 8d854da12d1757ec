"""LOOKUP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

if TYPE_CHECKING:
    from interpulse.broker.binary.connection import ClientConnection

__all__ = ["on_lookup"]


async def on_lookup(connection: ClientConnection, request: pb.CommandLookupTopic) -> None:
    """This broker serves every topic of an existing namespace, whether the topic exists or not."""
    topic = TopicName.parse(request.topic)
    rooms = connection.rooms
    with rooms.permits:
        if request.advertised_listener_name:
            raise ServiceNotReady(
                f"the broker do not have {request.advertised_listener_name} listener, "
                f"it does not have '{request.advertised_listener_name}' listener configured"
            )
        await rooms.namespaces.get_policies(topic.namespace_name)
        connection.output.send(commands.lookup_response(request.request_id, broker_url=rooms.service_url))
