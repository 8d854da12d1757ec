"""REST calls about namespaces as a whole, and about their clusters."""

from __future__ import annotations

from itertools import chain
from typing import Final

from interpulse.broker.rest.http.at_owner import listed_topics, redirect_to
from interpulse.broker.rest.http.bodies import NAMESPACE_POLICIES
from interpulse.broker.rest.http.call import (
    DONE,
    Answer,
    Call,
    Route,
    answer_changes,
    answer_json,
    answer_many,
)
from interpulse.broker.rest.policies.policy_values import policy_limits
from interpulse.in_turns import dumped_in_turns
from interpulse.model.adjustments import PLAN_LEVELS
from interpulse.model.errors import Conflict, InvalidRequest, NotFound, PulsarError
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain
from interpulse.model.operations import Namespaces
from interpulse.model.permissions import NO_PERMISSIONS, SUBSCRIPTION_AUTH_NONE
from interpulse.replication.adjust import plan_document
from interpulse.rules.bundles import RANGE_EQUALLY_DIVIDE
from interpulse.rules.placement import sent_to
from interpulse.rules.policy_checks import check_new_policies

_ALWAYS_SHOWN: Final = {
    "auth_policies": NO_PERMISSIONS.to_json(),
    "subscription_auth_mode": SUBSCRIPTION_AUTH_NONE,
    "clusterDispatchRate": {},
    "latency_stats_sample_rate": {},
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "subscription_types_enabled": [],
    "migrated": False,
}
"""Values that Pulsar shows for policies that were never set; its clients rely on some of them."""

_DOMAINS_BY_MODE: Final[dict[str, tuple[Domain, ...]]] = {
    "PERSISTENT": (PERSISTENT,),
    "NON_PERSISTENT": (NON_PERSISTENT,),
    "ALL": (PERSISTENT, NON_PERSISTENT),
}


async def list_namespaces(call: Call) -> Answer:
    await call.context.tenants.get(call.param("tenant"))
    return answer_json(await call.context.namespaces.list(call.param("tenant")))


async def get_policies(call: Call) -> Answer:
    policies = await call.context.namespaces.get_policies(call.namespace)
    body = _ALWAYS_SHOWN | policies.to_json()
    if policies.allow_auto_update_schema is None:
        body["is_allow_auto_update_schema"] = call.context.dynamic.config.is_allow_auto_update_schema_enabled
    return answer_json(body)


async def create_namespace(call: Call) -> Answer:
    """Create a namespace. With ``preview=true`` the answer lists the changes without making them."""
    policies = check_new_policies(call.object_or_empty(NAMESPACE_POLICIES), policy_limits(call))
    changes = await call.context.namespaces.create_of_tenant(call.namespace, policies, previewed=call.previewed)
    return answer_changes(call, changes)


async def delete_namespace(call: Call) -> Answer:
    """Delete a namespace. With ``preview=true`` the answer lists the changes without making them."""
    force = call.flag("force")
    changes = await call.context.deletion.namespace(call.namespace, force=force, previewed=call.previewed)
    return answer_changes(call, changes)


async def list_topics(call: Call) -> Answer:
    mode = call.query.get("mode", "PERSISTENT").upper()
    if mode not in _DOMAINS_BY_MODE:
        raise InvalidRequest(f"mode must be one of {', '.join(_DOMAINS_BY_MODE)}, not {mode[:100]!r}")
    await call.context.namespaces.get_policies(call.namespace)
    include_system = call.flag("includeSystemTopic")
    lists = [await listed_topics(call, domain, include_system=include_system) for domain in _DOMAINS_BY_MODE[mode]]
    return await answer_many(map(str, chain.from_iterable(lists)))


async def get_bundles(call: Call) -> Answer:
    await call.context.namespaces.get_policies(call.namespace)
    boundaries = await call.context.namespaces.boundaries(call.namespace)
    return answer_json({"boundaries": list(boundaries), "numBundles": len(boundaries) - 1})


async def unload(call: Call) -> None:
    """Close topics and release the bundles. As in Pulsar, a destination requires a bundle."""
    bundle, destination = call.param_or_none("bundle"), call.query.get("destinationBroker")
    broker = call.context.this_broker.broker_id
    if call.context.others is None and bundle is not None and destination not in (None, broker):
        raise Conflict(
            f"Not allowed unload namespace bundle to inactive destination broker {destination}: there is {broker}"
        )
    await call.context.bundles.unload(call.namespace, bundle, destination=destination)


def _at_owner(route: Route) -> Route:
    """Return the route, answered by the owner of its bundle; any broker answers for a bundle without owner."""

    async def answer(call: Call) -> object:
        owner = await call.context.bundles.elsewhere(call.namespace, call.param("bundle"))
        return await route.handler(call) if owner is None else redirect_to(call, sent_to(owner.broker, ""))

    return Route(route.operation, answer)


def _everywhere(route: Route) -> Route:
    """Return the route, which also asks the other owners of bundles of its namespace.

    Every owner is asked, then the first failure is raised; NotFound only if it holds for all of them.
    """

    async def answer(call: Call) -> object:
        others = call.context.others
        if others is None:
            return await route.handler(call)
        bundles = await call.context.bundles.others_of(call.namespace)
        found, failures = False, list[PulsarError]()
        for bundle, lock in bundles.items():
            at, _, operation = call.path.partition(f"/namespaces/{bundle.namespace}/")
            path = f"{at}/namespaces/{bundle.namespace}/{bundle.range}/{operation}"
            try:
                await others.ask(lock.broker.addresses, route.operation.method, path, kind="namespace")
                found = True
            except NotFound:  # no topic of this bundle has it
                continue
            except PulsarError as error:
                failures.append(error)
        try:
            await route.handler(call)
        except NotFound:
            if not (found or failures):
                raise
        except PulsarError as error:
            failures.append(error)
        if failures:
            raise failures[0]
        return None

    return Route(route.operation, answer)


async def split_bundle(call: Call) -> None:
    """Divide a bundle. The body has the positions for algorithms that need them."""
    await call.context.bundles.split(
        call.namespace,
        call.param("bundle"),
        algorithm=call.query.get("splitAlgorithmName") or RANGE_EQUALLY_DIVIDE,
        positions=call.integers(),
        unload=call.flag("unload"),
    )


async def clear_backlog(call: Call) -> None:
    subscription = _subscription(call) if "subscription" in call.params else None
    await call.context.bundles.clear_backlog(call.namespace, call.param_or_none("bundle"), subscription)


async def unsubscribe(call: Call) -> None:
    await call.context.bundles.unsubscribe(call.namespace, _subscription(call), call.param_or_none("bundle"))


def _subscription(call: Call) -> str:
    """Return the subscription, which is encoded once here, other than in the path of a topic."""
    return call.param("subscription", form_encoded=True)


async def get_replication_clusters(call: Call) -> Answer:
    return answer_json(list((await call.context.namespaces.get_policies(call.namespace)).replication_clusters))


async def set_replication_clusters(call: Call) -> Answer:
    """Enable replication. With a parameter of PIP-433 the answer is a plan, whatever its outcome."""
    clusters = call.strings()
    preview, adjust = call.previewed, call.flag_of_ours("adjustNamespaceLevelPoliciesAutomatically")
    if preview or adjust:
        return await _adjust(call, clusters, previewed=preview)
    compare = call.flag("compareTopicPartitions")
    await call.context.replication_clusters.set(call.namespace, clusters, compare=compare)
    return DONE


async def _adjust(call: Call, clusters: list[str], *, previewed: bool) -> Answer:
    replication = call.context.replication_clusters
    if previewed:
        plan = await replication.preview(call.namespace, clusters)
    else:
        plan = await replication.adjust(call.namespace, clusters, shown=call.query.get("planDigest"))
    return Answer(plan.http_status, await dumped_in_turns(plan_document(plan, iter), levels=PLAN_LEVELS))


async def get_allowed_clusters(call: Call) -> Answer:
    return answer_json(list((await call.context.namespaces.get_policies(call.namespace)).allowed_clusters))


ROUTES: Final = (
    Route(Namespaces.LIST, list_namespaces),
    Route(Namespaces.GET_POLICIES, get_policies),
    Route(Namespaces.CREATE, create_namespace),
    Route(Namespaces.DELETE, delete_namespace),
    Route(Namespaces.LIST_TOPICS, list_topics),
    Route(Namespaces.GET_BUNDLES, get_bundles),
    Route(Namespaces.UNLOAD, unload),
    _at_owner(Route(Namespaces.UNLOAD_BUNDLE, unload)),
    _at_owner(Route(Namespaces.SPLIT_BUNDLE, split_bundle)),
    _everywhere(Route(Namespaces.CLEAR, clear_backlog)),
    _everywhere(Route(Namespaces.CLEAR_ONE, clear_backlog)),
    _at_owner(Route(Namespaces.CLEAR_BUNDLE, clear_backlog)),
    _at_owner(Route(Namespaces.CLEAR_BUNDLE_ONE, clear_backlog)),
    _everywhere(Route(Namespaces.UNSUBSCRIBE, unsubscribe)),
    _at_owner(Route(Namespaces.UNSUBSCRIBE_BUNDLE, unsubscribe)),
    Route(Namespaces.GET_CLUSTERS, get_replication_clusters),
    Route(Namespaces.SET_CLUSTERS, set_replication_clusters),
    Route(Namespaces.GET_ALLOWED_CLUSTERS, get_allowed_clusters),
    Route(
        Namespaces.SET_ALLOWED_CLUSTERS,
        lambda call: call.context.replication_clusters.set_allowed(call.namespace, call.strings()),
    ),
)
