"""REST calls about the rates and quotas of a namespace, which are stored with others of their kind.

Rates stand by cluster, and calls are about those of this one; quotas stand by type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from interpulse.broker.rest.http.bodies import BACKLOG_QUOTA, DISPATCH_RATE, PUBLISH_RATE, SUBSCRIBE_RATE
from interpulse.broker.rest.http.call import NAMESPACE_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.fields import Body
from interpulse.broker.rest.http.required_permissions import on_policy
from interpulse.broker.rest.policies.namespace_policies import change_policies, fits_retention
from interpulse.broker.rest.policies.policy_bodies import backlog_quota_type, record
from interpulse.model.policies.messaging_policies import (
    DESTINATION_STORAGE,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.rules.policy_checks import (
    check_backlog_quota,
    check_dispatch_rate,
    check_subscribe_rate,
)

__all__ = ["ROUTES"]

_QUOTA_TOO_LARGE: Final = (
    "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry"
)

Rate = PublishRate | DispatchRate | SubscribeRate


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _rate_routes(
    path: str, attribute: str, body: Body, check: Callable[[Mapping[str, Any]], Rate]
) -> tuple[Route, ...]:
    async def show(call: Call) -> Answer:
        policies = await call.context.namespaces.get_policies(call.namespace)
        rate = getattr(policies, attribute).get(call.context.namespaces.local_cluster)
        return answer_json(rate and rate.to_json())

    async def store(call: Call) -> Answer:
        return await replace(call, record(call, body, check))

    async def clear(call: Call) -> Answer:
        return await replace(call, None)

    async def replace(call: Call, rate: Rate | None) -> Answer:
        cluster = call.context.namespaces.local_cluster

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            others = _without(getattr(policies, attribute), cluster)
            return policies.changed(**{attribute: others | ({cluster: rate} if rate else {})})

        return await change_policies(call, change)

    url = f"{NAMESPACE_PATH}/{path}"
    return (
        Route("GET", url, show, on_policy),
        Route("POST", url, store, on_policy),
        Route("DELETE", url, clear, on_policy),
    )


async def get_backlog_quotas(call: Call) -> Answer:
    policies = await call.context.namespaces.get_policies(call.namespace)
    return answer_json({kind: quota.to_json() for kind, quota in sorted(policies.backlog_quotas.items())})


async def set_backlog_quota(call: Call) -> Answer:
    kind = backlog_quota_type(call)
    quota = check_backlog_quota(kind, call.object(BACKLOG_QUOTA), namespace=call.namespace)

    def change(policies: NamespacePolicies) -> NamespacePolicies:
        changed = policies.changed(backlog_quotas={**policies.backlog_quotas, kind: quota})
        if kind == DESTINATION_STORAGE:
            fits_retention(changed, _QUOTA_TOO_LARGE)
        return changed

    return await change_policies(call, change)


async def remove_backlog_quota(call: Call) -> Answer:
    kind = backlog_quota_type(call)
    return await change_policies(
        call, lambda policies: policies.changed(backlog_quotas=_without(policies.backlog_quotas, kind))
    )


ROUTES: Final = (
    *_rate_routes("publishRate", "publish_rates", PUBLISH_RATE, PublishRate.from_json),
    *_rate_routes("dispatchRate", "dispatch_rates", DISPATCH_RATE, check_dispatch_rate),
    *_rate_routes("subscriptionDispatchRate", "subscription_dispatch_rates", DISPATCH_RATE, check_dispatch_rate),
    *_rate_routes("subscribeRate", "subscribe_rates", SUBSCRIBE_RATE, check_subscribe_rate),
    *_rate_routes("replicatorDispatchRate", "replicator_dispatch_rates", DISPATCH_RATE, check_dispatch_rate),
    Route("GET", f"{NAMESPACE_PATH}/backlogQuotaMap", get_backlog_quotas, on_policy),
    Route("POST", f"{NAMESPACE_PATH}/backlogQuota", set_backlog_quota, on_policy),
    Route("DELETE", f"{NAMESPACE_PATH}/backlogQuota", remove_backlog_quota, on_policy),
)
