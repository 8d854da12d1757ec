"""A cluster has another name in the documents of tenants, namespaces and topics, and all else stays."""

from __future__ import annotations

from interpulse.broker.cluster_import.cluster_import import renamed


def test_documents_when_renamed_then_every_place_of_the_name_has_the_new_one() -> None:
    rate = {"dispatchThrottlingRateInMsg": 5}
    body = {
        "allowedClusters": ["standalone", "west"],
        "replication_clusters": ["west", "standalone"],
        "topicDispatchRate": {"standalone": rate, "west": rate},
        "replicatorDispatchRate": {"standalone->west": rate},
        "global": {"replicationClusters": ["standalone"]},
        "properties": {"standalone": "standalone"},
        "allowed_clusters": None,
    }
    assert renamed(body, "standalone", "lab") == {
        "allowedClusters": ["lab", "west"],
        "replication_clusters": ["west", "lab"],
        "topicDispatchRate": {"lab": rate, "west": rate},
        "replicatorDispatchRate": {"lab->west": rate},
        "global": {"replicationClusters": ["lab"]},
        "properties": {"standalone": "standalone"},
        "allowed_clusters": None,
    }


def test_documents_when_both_names_are_listed_then_one_is_left() -> None:
    assert renamed({"allowedClusters": ["a", "b"]}, "a", "b") == {"allowedClusters": ["b"]}


def test_rates_of_a_topic_when_renamed_then_stay_as_they_are() -> None:
    body = {"replicatorDispatchRate": {"dispatchThrottlingRateInMsg": 5, "ratePeriodInSecond": 1}}
    assert renamed(body, "standalone", "lab") == body
