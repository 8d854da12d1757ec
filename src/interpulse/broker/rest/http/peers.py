"""Namespaces that a peer cluster serves in place of this one: calls about their topics are redirected."""

from __future__ import annotations

import functools
from urllib.parse import urlencode

from interpulse.broker.rest.http.call import Answer, Call, Handler

__all__ = ["or_at_peer"]


def or_at_peer(handler: Handler, below: str = "") -> Handler:
    """Return a handler that redirects (307) to the peer cluster that serves the namespace.

    ``below`` is the part of the path after the topic. Real Pulsar redirects reads, but answers creations with 503 and
    no address.
    """

    @functools.wraps(handler)
    async def answer(call: Call) -> Answer:
        peer = await call.context.lookups.peer(call.namespace)
        if peer is None or not (peer.web_url or peer.web_url_tls):
            return await handler(call)
        query = f"?{urlencode(call.query)}" if call.query else ""
        location = f"{peer.web_address(tls=call.tls)}/admin/v2/{call.topic.rest_path}{below}{query}"
        return Answer(307, headers={"Location": location})

    return answer
