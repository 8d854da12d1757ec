"""Admin calls for the policies of single topics."""

from __future__ import annotations

from typing import Any

from interpulse.client.admin.policy_call import QUOTAS, read_policy
from interpulse.client.admin.topic_requests import topic_path
from interpulse.client.json_readers import ignored
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import TopicName
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
        path = topic_path(topic, entry.level.path)
        return await self._http.get(path, kind="topic", read=read_policy(entry), query=query)

    async def set(self, topic: TopicName | str, name: str, value: Any, *, everywhere: bool = False) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value.

        With ``everywhere`` the policy is global: replication copies it to every cluster of the topic, where a local
        policy takes precedence.
        """
        level, body = TOPIC_CALLS[name].level, TOPIC_CALLS[name].policy.kind.write(value)
        query = _everywhere(everywhere) | ({level.path: body} if level.in_query else {})
        path = topic_path(topic, level.path)
        sent = None if level.in_query else body
        await self._http.request(level.method, path, kind="topic", read=ignored, query=query, body=sent)

    async def remove(self, topic: TopicName | str, name: str, *, everywhere: bool = False) -> None:
        """Remove a policy by its name. The namespace's policy applies again."""
        path = topic_path(topic, TOPIC_CALLS[name].level.path)
        await self._http.delete(path, kind="topic", query=_everywhere(everywhere))

    async def delete(self, topic: TopicName | str) -> None:
        """Remove all policies of the topic."""
        await self._http.delete(topic_path(topic, "policies"), kind="topic")

    async def backlog_quotas(
        self, topic: TopicName | str, *, applied: bool = False, everywhere: bool = False
    ) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The namespace's quota applies to a missing type."""
        query = {"applied": applied, **_everywhere(everywhere)}
        return await self._http.get(topic_path(topic, "backlogQuotaMap"), kind="topic", read=QUOTAS, query=query)

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
        await self._http.post(topic_path(topic, "backlogQuota"), quota.to_json(), kind="topic", query=query)

    async def remove_backlog_quota(
        self, topic: TopicName | str, kind: QuotaType = "destination_storage", *, everywhere: bool = False
    ) -> None:
        query = {"backlogQuotaType": kind, **_everywhere(everywhere)}
        await self._http.delete(topic_path(topic, "backlogQuota"), kind="topic", query=query)


def _everywhere(asked: bool) -> dict[str, object]:
    return {"isGlobal": True} if asked else {}
