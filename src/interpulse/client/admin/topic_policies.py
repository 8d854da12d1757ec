"""Admin calls about the policies of single topics."""

from __future__ import annotations

from typing import Any

from interpulse.client.admin.policy_call import QUOTAS, TOPIC_POLICIES, QuotaType
from interpulse.client.admin.topic_requests import topic_path
from interpulse.client.json_readers import ignored, optional
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import TopicName
from interpulse.model.policies.messaging_policies import BacklogQuota

__all__ = ["TopicPoliciesAdmin"]


class TopicPoliciesAdmin:
    """The policies of a topic, with all its partitions. Raises PreconditionFailed for a single partition."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def get(self, topic: TopicName | str, name: str, *, applied: bool = False, everywhere: bool = False) -> Any:
        """The policy of that name in `TopicPolicies`, such as ``max_producers``; None if it is not set.

        ``applied`` asks for what is in force, ``everywhere`` for what is set for all clusters at once.
        """
        call = TOPIC_POLICIES[name]
        query = {"applied": applied, **_everywhere(everywhere)}
        read = optional(call.from_json)
        return await self._http.get(topic_path(topic, call.path), kind="topic", read=read, query=query)

    async def set(self, topic: TopicName | str, name: str, value: Any, *, everywhere: bool = False) -> None:
        """Raises InvalidRequest or PreconditionFailed for what a policy cannot be.

        With ``everywhere`` it counts on every cluster of the topic that has nothing else set: replication carries it.
        """
        call = TOPIC_POLICIES[name]
        body = call.to_json(value)
        query = _everywhere(everywhere) | ({call.path: body} if call.in_query else {})
        path = topic_path(topic, call.path)
        sent = None if call.in_query else body
        await self._http.request(call.method, path, kind="topic", read=ignored, query=query, body=sent)

    async def remove(self, topic: TopicName | str, name: str, *, everywhere: bool = False) -> None:
        """Let the policy of the namespace apply again."""
        path = topic_path(topic, TOPIC_POLICIES[name].path)
        await self._http.delete(path, kind="topic", query=_everywhere(everywhere))

    async def delete(self, topic: TopicName | str) -> None:
        """Take away whatever is set for the topic."""
        await self._http.delete(topic_path(topic, "policies"), kind="topic")

    async def backlog_quotas(
        self, topic: TopicName | str, *, applied: bool = False, everywhere: bool = False
    ) -> dict[str, BacklogQuota]:
        """The quotas of the backlog by type; for a type that is missing the namespace decides."""
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
        """Raises PreconditionFailed for a quota above what is retained."""
        query = {"backlogQuotaType": kind, **_everywhere(everywhere)}
        await self._http.post(topic_path(topic, "backlogQuota"), quota.to_json(), kind="topic", query=query)

    async def remove_backlog_quota(
        self, topic: TopicName | str, kind: QuotaType = "destination_storage", *, everywhere: bool = False
    ) -> None:
        query = {"backlogQuotaType": kind, **_everywhere(everywhere)}
        await self._http.delete(topic_path(topic, "backlogQuota"), kind="topic", query=query)


def _everywhere(asked: bool) -> dict[str, object]:
    return {"isGlobal": True} if asked else {}
