"""Admin calls for the policies of single topics."""

from __future__ import annotations

from typing import Any

from interpulse.client.admin.calls import QUOTAS, ask, read_policy, send
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import TopicName
from interpulse.model.operations import Topics, policy_operations
from interpulse.model.policies.catalogue import TOPIC_CALLS
from interpulse.model.policies.policy_records import BacklogQuota, QuotaType


class TopicPoliciesAdmin:
    """Policies of a topic and all its partitions. Raise PreconditionFailed for a single partition."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def get(self, topic: TopicName | str, name: str, *, applied: bool = False, everywhere: bool = False) -> Any:
        """Return a policy by its name in `TopicPolicies`, such as ``max_producers``; None if it is not set.

        With ``applied``, return the policy in force. With ``everywhere``, return the global policy, for all clusters.
        """
        entry = TOPIC_CALLS[name]
        query = {"applied": applied, **_everywhere(everywhere)}
        return await ask(self._http, policy_operations(entry).get, topic, read=read_policy(entry), query=query)

    async def set(self, topic: TopicName | str, name: str, value: Any, *, everywhere: bool = False) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value.

        With ``everywhere`` the policy is global: replication copies it to every cluster of the topic, where a local
        policy takes precedence.
        """
        entry, query = TOPIC_CALLS[name], _everywhere(everywhere)
        body = entry.policy.kind.write(value)
        if entry.level.in_query:
            query, body = query | {entry.level.path: body}, None
        await send(self._http, policy_operations(entry).set, topic, query=query, body=body)

    async def remove(self, topic: TopicName | str, name: str, *, everywhere: bool = False) -> None:
        """Remove a policy by its name. The namespace's policy applies again."""
        operation = policy_operations(TOPIC_CALLS[name]).remove
        await send(self._http, operation, topic, query=_everywhere(everywhere))

    async def delete(self, topic: TopicName | str) -> None:
        """Remove all policies of the topic."""
        await send(self._http, Topics.REMOVE_POLICIES, topic)

    async def backlog_quotas(
        self, topic: TopicName | str, *, applied: bool = False, everywhere: bool = False
    ) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The namespace's quota applies to a missing type."""
        query = {"applied": applied, **_everywhere(everywhere)}
        return await ask(self._http, Topics.GET_QUOTAS, topic, read=QUOTAS, query=query)

    async def set_backlog_quota(
        self,
        topic: TopicName | str,
        quota: BacklogQuota,
        kind: QuotaType = "destination_storage",
        *,
        everywhere: bool = False,
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        query = {"backlogQuotaType": kind, **_everywhere(everywhere)}
        await send(self._http, Topics.SET_QUOTA, topic, query=query, body=quota.to_json())

    async def remove_backlog_quota(
        self, topic: TopicName | str, kind: QuotaType = "destination_storage", *, everywhere: bool = False
    ) -> None:
        query = {"backlogQuotaType": kind, **_everywhere(everywhere)}
        await send(self._http, Topics.REMOVE_QUOTA, topic, query=query)


def _everywhere(asked: bool) -> dict[str, object]:
    return {"isGlobal": True} if asked else {}
