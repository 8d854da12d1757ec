"""REST calls about this broker: health, settings, addresses."""

from __future__ import annotations

from typing import Final

from interpulse import __version__
from interpulse.broker.config import dynamic_keys
from interpulse.broker.rest.call import DONE, Answer, Call, Route, answer_json, answer_text
from interpulse.model.errors import ClusterNotFound, ServiceNotReady

__all__ = ["ROUTES"]

_VERSION: Final = f"5.0.0+interpulse-{__version__}"
"""The line of Apache Pulsar whose REST API this is, and our own version."""


async def list_brokers(call: Call) -> Answer:
    return answer_json([call.rooms.this_broker.broker_id])


async def list_brokers_of_cluster(call: Call) -> Answer:
    cluster = call.param("cluster")
    if cluster != call.rooms.namespaces.local_cluster:
        raise ClusterNotFound(f"Cluster {cluster} is not served by this broker")
    return await list_brokers(call)


async def get_leader(call: Call) -> Answer:
    broker = call.rooms.this_broker
    return answer_json({"serviceUrl": broker.web_url, "brokerId": broker.broker_id})


async def check_health(call: Call) -> Answer:
    """``ok`` only if clients can publish and the metadata store answers."""
    if not call.rooms.ready():
        raise ServiceNotReady("The broker is starting or stopping")
    await call.rooms.clusters.get(call.rooms.namespaces.local_cluster)
    return answer_text("ok")


async def check_alive(call: Call) -> Answer:
    """The event loop turns; nothing more is said."""
    return answer_text("ok")


async def get_version(call: Call) -> Answer:
    return answer_text(_VERSION)


async def list_dynamic(call: Call) -> Answer:
    return answer_json(dynamic_keys())


async def get_dynamic(call: Call) -> Answer:
    return answer_json(await call.rooms.dynamic.values())


async def get_runtime(call: Call) -> Answer:
    """Every setting in force, every value a text, as Pulsar shows them."""
    return answer_json(call.rooms.dynamic.config.as_text())


async def set_dynamic(call: Call) -> Answer:
    await call.rooms.dynamic.set(call.param("key"), call.param("value"))
    return DONE


async def delete_dynamic(call: Call) -> Answer:
    await call.rooms.dynamic.delete(call.param("key"))
    return DONE


_BROKERS: Final = "/admin/v2/brokers"
_CONFIGURATION: Final = f"{_BROKERS}/configuration"

ROUTES: Final = (
    Route("GET", _BROKERS, list_brokers),
    Route("GET", f"{_BROKERS}/{{cluster}}", list_brokers_of_cluster),
    Route("GET", f"{_BROKERS}/leaderBroker", get_leader),
    Route("GET", f"{_BROKERS}/health", check_health),
    Route("GET", f"{_BROKERS}/ready", check_health),
    Route("GET", f"{_BROKERS}/version", get_version),
    Route("GET", _CONFIGURATION, list_dynamic),
    Route("GET", f"{_CONFIGURATION}/values", get_dynamic),
    Route("GET", f"{_CONFIGURATION}/runtime", get_runtime),
    Route("POST", f"{_CONFIGURATION}/{{key}}/{{value}}", set_dynamic),
    Route("DELETE", f"{_CONFIGURATION}/{{key}}", delete_dynamic),
    Route("GET", "/livez", check_alive),
    Route("GET", "/readyz", check_health),
)
