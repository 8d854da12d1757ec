"""What tests of replication between two brokers begin with."""

from __future__ import annotations

from typing import Any

from tests.support.rest_broker import RestBroker
from tests.support.rest_client import Reply, call

BOTH = ["east", "west"]


async def done(broker: RestBroker, method: str, path: str, body: Any = None) -> Reply:
    """The answer to a call that must not be refused."""
    reply = await call(broker.web_url, method, path, body)
    assert reply.status < 300, reply
    return reply


async def join(east: RestBroker, west_url: str) -> None:
    """East knows west and has the namespace ``demo/a``."""
    await done(east, "PUT", "clusters/west", {"serviceUrl": west_url})
    await done(east, "PUT", "tenants/demo", {"allowedClusters": BOTH})
    await done(east, "PUT", "namespaces/demo/a")


async def join_both(east: RestBroker, west: RestBroker) -> None:
    """Both know each other and have the namespace ``demo/a``."""
    await join(east, west.web_url)
    await done(west, "PUT", "clusters/east", {"serviceUrl": east.web_url})
    await done(west, "PUT", "tenants/demo", {"allowedClusters": BOTH})
    await done(west, "PUT", "namespaces/demo/a")
