"""REST calls about the state of replication."""

from __future__ import annotations

from typing import Final

from interpulse.broker.replication.acknowledgement_feed import Question
from interpulse.broker.rest.http.call import (
    WAIT_SECONDS_MAX,
    Answer,
    Call,
    Route,
    answer_json,
    answer_pages,
)
from interpulse.broker.rest.subscriptions import check_replicated_enabled
from interpulse.broker.topics.topic_settings import policies_in_force
from interpulse.in_turns import dumped_in_turns
from interpulse.model.errors import InvalidRequest
from interpulse.model.operations import Replication
from interpulse.model.policies.policy_documents import TopicPolicies


async def get_namespace_status(call: Call) -> Answer:
    """Return the replication status, generated while it is sent: some 40 MB for 100,000 topics."""
    return await answer_pages(call.context.replication_status.in_pages(call.namespace))


async def get_topics_with_clusters(call: Call) -> Answer:
    """Return the topics that have replication clusters of their own, in one answer for a replication job."""
    await call.context.namespaces.get_policies(call.namespace)
    own = await call.context.topic_policies.replication_clusters(call.namespace)
    return answer_json({str(topic): sorted(own[topic]) for topic in sorted(own, key=str)})


async def get_global_policies(call: Call) -> Answer:
    """Return the policies that a replication job copies to the other clusters."""
    await call.context.namespaces.get_policies(call.namespace)
    found = await call.context.topic_policies.set_everywhere(call.namespace)
    return answer_json({str(topic): found[topic].to_json() for topic in sorted(found, key=str)})


async def get_dispatch_rates(call: Call) -> Answer:
    """Return the rate limits for a replication job: the one for all topics, and those of single topics."""
    namespace = await call.context.namespaces.get_policies(call.namespace)
    in_force = policies_in_force(TopicPolicies(), namespace, call.context.dynamic.config).replicator_dispatch_rate
    assert in_force is not None  # broker settings cover every policy
    own = await call.context.topic_policies.replicator_dispatch_rates(call.namespace)
    topics = {str(topic): own[topic].to_json() for topic in sorted(own, key=str)}
    return answer_json({"default": in_force.to_json(), "topics": topics})


async def get_acknowledgements(call: Call) -> Answer:
    """Return the subscriptions that changed since the token of an earlier answer, or all, with their whole state.

    ``wait`` is the time to wait for a change, such as ``20s``, at most a minute. With ``all`` those count too that are
    not marked as replicated. ``more`` is true if another page follows, for the token of this one.
    """
    check_replicated_enabled(call)
    wait_seconds = call.seconds_of_ours("wait", most=WAIT_SECONDS_MAX)
    question = Question(call.namespace, marked=not call.flag_of_ours("all"), wait_seconds=wait_seconds)
    gathered, since = call.context.acknowledgements, call.query.get("since", "")
    asked = gathered.here if call.flag("authoritative") else gathered  # the flag: another broker gathers
    page = await asked.page(question, since)
    return Answer(200, await dumped_in_turns(page.to_json(), levels=2))


async def report_status(call: Call) -> None:
    records = call.json()
    if not isinstance(records, list):
        raise InvalidRequest("The body must be an array of status records")
    await call.context.replication_status.report(call.namespace, records)


ROUTES: Final = (
    Route(Replication.GET_STATUS, get_namespace_status),
    Route(Replication.LIST_TOPICS, get_topics_with_clusters),
    Route(Replication.GET_GLOBAL_POLICIES, get_global_policies),
    Route(Replication.GET_DISPATCH_RATES, get_dispatch_rates),
    Route(Replication.REPORT_STATUS, report_status),
    Route(Replication.GET_ACKNOWLEDGEMENTS, get_acknowledgements),
    Route(Replication.GET_STATUS_OF_TOPIC, lambda call: call.context.replication_status.of_topic(call.topic)),
    Route(Replication.REPORT_STATUS_OF_TOPIC, report_status),
)
