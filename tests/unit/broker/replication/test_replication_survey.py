"""What is counted of replication."""

from __future__ import annotations

from typing import cast

from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_status import ReplicationStatus
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.broker.replication.replication_survey import ReplicationSurvey, Survey
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from tests.support.counting_store import CountingStore


class Pairs:
    """So many topics, replicated to ``west``."""

    def __init__(self, count: int) -> None:
        self._topics = [TopicName.parse(f"t-{number}") for number in range(count)]

    def topics(self) -> list[TopicName]:
        return self._topics

    def clusters_of(self, topic: TopicName) -> tuple[str, ...]:
        return ("west",)

    def state(self, topic: TopicName, cluster: str) -> None:
        """Nothing is known."""


async def test_reports_are_read_once_for_all_topics_of_a_namespace() -> None:
    store, pairs = CountingStore(), Pairs(1234)
    namespaces = Namespaces(store, local_cluster="east")
    status = ReplicationStatus(
        store,
        namespaces,
        cast(TopicLifecycle, None),  # nobody asks for topics here
        cast(TopicPolicyRecords, None),
        remote_topics=pairs,
    )
    survey = await ReplicationSurvey(status, cast(RemoteTopics, pairs), ReplicationJobView).look()
    assert survey.states == {("west", "PROVISIONING"): 1234}
    assert survey.remotes == {"west"}
    assert len(store.gets) == 1


def test_longest_delay_of_a_namespace_counts_and_the_rest_adds_up() -> None:
    survey, lag = Survey(), {"lagEntries": 2, "lagMessages": 5}
    for topic, cluster, seconds in (("a", "west", 7.5), ("b", "west", 3), ("a", "north", None)):
        record = {"topic": topic, "cluster": cluster, "state": "HELD", "lagSeconds": seconds, **lag}
        survey.add(str(PUBLIC_DEFAULT), record)
    west = "west", str(PUBLIC_DEFAULT)
    assert (survey.states["west", "HELD"], survey.lag_entries[west], survey.lag_messages[west]) == (2, 4, 10)
    assert survey.lag_seconds[west] == 7.5
    assert survey.delays == {("a", "west"): 7.5, ("b", "west"): 3}
