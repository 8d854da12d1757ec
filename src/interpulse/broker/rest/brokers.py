"""REST calls about this broker: health, settings, addresses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from interpulse import __version__
from interpulse.broker.config.broker_config import dynamic_keys
from interpulse.broker.rest.http.at_owner import redirect_to
from interpulse.broker.rest.http.call import WAIT_SECONDS_MAX, Answer, Call, Route, answer_json, answer_text
from interpulse.model.errors import ClusterNotFound, NamespaceNotFound, NotFound, ServiceNotReady
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName
from interpulse.model.operations import Brokers
from interpulse.rules.isolation import assignment
from interpulse.rules.placement import sent_to

_OFFERED: Final = {"supportsAcknowledgementSync": "1", "supportsMetadataChanges": "1"}
"""Parts of this API that clients look for, with their versions."""

VERSION: Final = f"5.0.0+interpulse-{__version__}"
"""The line of Apache Pulsar whose REST API this is, and our own version."""


async def registered_brokers(call: Call) -> list[str]:
    """Return the ids of the registered brokers, sorted; a broker alone counts as registered."""
    others = call.context.others
    if others is None:
        return [call.context.this_broker.broker_id]
    return sorted((await others.ownership.brokers.view()).reports)


async def list_brokers_of_cluster(call: Call) -> Answer:
    _check_cluster(call)
    return answer_json(await registered_brokers(call))


def _check_cluster(call: Call) -> None:
    cluster = call.param("cluster")
    if cluster != call.context.namespaces.local_cluster:
        raise ClusterNotFound(f"Cluster {cluster} is not served by this broker")


async def get_leader(call: Call) -> Answer:
    """Return the leader that Pulsar's brokers elected, else this broker: our brokers elect none."""
    broker = call.context.this_broker
    if call.context.others is not None:
        elected = (await call.context.others.ownership.brokers.view()).elected
        broker = broker if elected is None else sent_to(elected.broker, "")
    return answer_json({"serviceUrl": broker.web_url or broker.web_url_tls, "brokerId": broker.broker_id})


async def get_owned(call: Call) -> Answer:
    """Return the bundles that a broker owns, of every namespace on the local cluster. The broker itself answers."""
    _check_cluster(call)
    others, own, asked = call.context.others, call.context.this_broker.broker_id, call.param("broker")
    reports = {} if others is None else (await others.ownership.brokers.view()).reports
    known = [own] if others is None else sorted(reports)
    if asked not in known:
        raise NotFound(f"Broker id '{asked}' not found in available brokers: there is {', '.join(known)}")
    if asked != own:
        return redirect_to(call, sent_to(reports[asked].broker, ""))
    owned: dict[str, dict[str, Any]] = {}
    isolation = await call.context.isolation_policies.in_force(call.param("cluster"))
    for tenant in await call.context.tenants.list():
        for name in await call.context.namespaces.list(tenant):
            with suppress(NamespaceNotFound):  # deleted meanwhile
                bundles = await call.context.bundles.served(NamespaceName.parse(name))
                owned |= {f"{name}/{bundle}": _ownership(isolation, name, own) for bundle in bundles}
    return answer_json(owned)


def _ownership(isolation: IsolationPolicies, namespace: str, broker: str) -> dict[str, Any]:
    kind, controlled = assignment(isolation, namespace, broker)
    return {"broker_assignment": kind, "is_controlled": controlled, "is_active": True}


async def check_backlog_quotas(call: Call) -> None:
    """Check the backlog quotas now, as is done every backlogQuotaCheckIntervalInSeconds."""
    await call.context.registry.topic_tasks.check_backlogs()


async def check_health(call: Call) -> Answer:
    """Answer ``ok`` if clients can publish, disk space suffices, and the metadata store answers."""
    if not call.context.ready():
        raise ServiceNotReady("The broker is starting or stopping")
    disk_space = call.context.instruments.disk_space
    if disk_space is not None:
        disk_space.check()
    await call.context.clusters.get(call.context.namespaces.local_cluster)
    return answer_text("ok")


async def check_alive(call: Call) -> Answer:
    """Answer ``ok`` if the event loop turns; nothing else is checked."""
    return answer_text("ok")


async def check_status_file(call: Call) -> Answer:
    """Answer load balancers, as Pulsar does: removing the status file takes the broker out while it goes on serving."""
    path = call.context.dynamic.config.status_file_path
    if path and call.context.ready() and await asyncio.to_thread(Path(path).is_file):
        return answer_text("OK")
    raise NotFound("The broker is not in rotation: it is not ready, or there is no file at statusFilePath")


async def get_version(call: Call) -> Answer:
    return answer_text(VERSION)


async def list_dynamic(call: Call) -> Answer:
    return answer_json(dynamic_keys())


async def get_runtime(call: Call) -> Answer:
    """Return every setting in force, and what this broker offers beyond Pulsar. Values are strings, as in Pulsar."""
    return answer_json(call.context.dynamic.config.as_text() | _OFFERED)


async def await_changes(call: Call) -> Answer:
    """Return the token of the present topics, policies and clusters: as soon as it differs from the one ``since``.

    ``wait`` is the time to wait for that, such as ``20s``, at most a minute.
    """
    wait_seconds = call.seconds_of_ours("wait", most=WAIT_SECONDS_MAX)
    return answer_json({"token": await call.context.metadata_changes.after(call.query.get("since", ""), wait_seconds)})


ROUTES: Final = (
    Route(Brokers.LIST, lambda call: registered_brokers(call)),
    Route(Brokers.LIST_OF_CLUSTER, list_brokers_of_cluster),
    Route(Brokers.GET_OWNED, get_owned),
    Route(Brokers.CHECK_BACKLOG_QUOTAS, check_backlog_quotas),
    Route(Brokers.GET_LEADER, get_leader),
    Route(Brokers.CHECK_HEALTH, check_health),
    Route(Brokers.CHECK_READY, check_health),
    Route(Brokers.GET_VERSION, get_version),
    Route(Brokers.LIST_DYNAMIC, list_dynamic),
    Route(Brokers.GET_DYNAMIC, lambda call: call.context.dynamic.values()),
    Route(Brokers.GET_RUNTIME, get_runtime),
    Route(Brokers.SET_DYNAMIC, lambda call: call.context.dynamic.set(call.param("key"), call.param("value"))),
    Route(Brokers.DELETE_DYNAMIC, lambda call: call.context.dynamic.delete(call.param("key"))),
    Route(Brokers.AWAIT_CHANGES, await_changes),
    Route(Brokers.IS_ALIVE, check_alive),
    Route(Brokers.IS_READY, check_health),
    Route(Brokers.HAS_STATUS_FILE, check_status_file),
)
