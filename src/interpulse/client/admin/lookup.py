"""Admin calls about lookups: the broker and the bundle of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpulse.client.json_readers import record, string
from interpulse.client.lookup.http_batch_lookup import lookup_over_http
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

__all__ = ["LookupAdmin"]


class LookupAdmin:
    """Lookups of topics, which never create one."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def topic(self, topic: TopicName | str) -> dict[str, Any]:
        """The addresses of the serving broker: ``brokerUrl``, ``httpUrl`` and their variants. Raises TopicNotFound."""
        name = TopicName.parse(str(topic))
        return await self._http.get(f"/lookup/v2/topic/{name.rest_path}", kind="topic", read=record)

    async def topics(self, topics: Iterable[TopicName | str]) -> dict[TopicName, dict[str, Any] | PulsarError]:
        """The same for many topics with few questions (PIP-35), or one by one where the broker does not offer that.

        Every topic has addresses or its own failure; the topics need not exist.
        """
        wanted = [TopicName.parse(str(topic)) for topic in topics]
        return await lookup_over_http(self._http, wanted, self.topic)

    async def bundle_range(self, topic: TopicName | str) -> str:
        """The hash range of the topic's bundle, such as ``0x40000000_0x80000000``."""
        name = TopicName.parse(str(topic))
        return await self._http.get(f"/lookup/v2/topic/{name.rest_path}/bundle", kind="topic", read=string)
