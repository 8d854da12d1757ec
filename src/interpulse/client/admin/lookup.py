"""Admin calls that look up the broker and the bundle of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpulse.client.admin.calls import ask
from interpulse.client.json_readers import record, string
from interpulse.client.lookup.http_lookup import lookup_over_http
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.model.operations import Lookups


class LookupAdmin:
    """Lookups of topics. They never create a topic."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def topic(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the addresses of the serving broker: ``brokerUrl``, ``httpUrl`` and variants. Raise TopicNotFound."""
        return await ask(self._http, Lookups.FIND, topic, read=record)

    async def topics(self, topics: Iterable[TopicName | str]) -> dict[TopicName, dict[str, Any] | PulsarError]:
        """Look up many topics with few requests (PIP-35), or one by one if the broker has no batch lookup.

        Return the addresses of each topic, or its own failure. The topics need not exist.
        """
        wanted = [TopicName.parse(str(topic)) for topic in topics]
        return await lookup_over_http(self._http, wanted, self.topic)

    async def bundle_range(self, topic: TopicName | str) -> str:
        """Return the hash range of the topic's bundle, such as ``0x40000000_0x80000000``."""
        return await ask(self._http, Lookups.GET_BUNDLE, topic, read=string)
