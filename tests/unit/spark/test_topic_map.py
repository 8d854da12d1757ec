"""Under which names topics are written."""

import pytest

from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName
from interpulse.spark.topic_map import TopicMap, parse_topic_map


def made(*rules, merge=False):
    return parse_topic_map({"rules": [{"from": given, "to": to} for given, to in rules], "merge": merge})


@pytest.mark.parametrize(
    ("rules", "topic", "expected"),
    [
        pytest.param([], "shop/orders/a", "shop/orders/a", id="no-rules"),
        pytest.param([("shop/(.*)", "store/$1")], "shop/orders/a", "store/orders/a", id="tenant"),
        pytest.param([("shop/orders/(.*)", "shop/sold/$1")], "shop/orders/a", "shop/sold/a", id="namespace"),
        pytest.param([("shop/(.*)", "store/$1")], "shop/orders/a-partition-3", "store/orders/a-partition-3", id="part"),
        pytest.param([("shop/(.*)", "store/$1")], "workshop/orders/a", "workshop/orders/a", id="matched-as-a-whole"),
        pytest.param(
            [("shop/orders/x", "shop/orders/y"), ("shop/(.*)", "store/$1")],
            "shop/orders/x",
            "shop/orders/y",
            id="first-rule-that-matches-counts",
        ),
        pytest.param(
            [("persistent://(?P<t>[^/]+)/(.*)", "persistent://${t}-copy/$2")],
            "shop/orders/a",
            "shop-copy/orders/a",
            id="named-group",
        ),
        pytest.param([("shop/n/(.*)", "shop/n/$1.$$")], "shop/n/a", "shop/n/a.$", id="dollar"),
    ],
)
def test_target(rules, topic, expected):
    assert made(*rules).target(TopicName.parse(topic)) == TopicName.parse(expected)


def test_rules_survive_the_way_through_an_option():
    topic_map = made(("shop/(.*)", "store/$1"), merge=True)
    assert parse_topic_map(topic_map.to_json()) == topic_map
    assert not TopicMap()


def test_topics_that_would_share_a_name_are_all_named_unless_they_may():
    a, b, c = (TopicName.parse(f"{name}/n/x") for name in "abc")
    rules = [("(?:a|b)/n/(.*)", "d/n/$1")]
    problems = made(*rules).problems([a, b, c])
    assert problems.keys() == {a, b}
    assert f"{a} and {b} the same name persistent://d/n/x" in problems[a]
    assert made(*rules, merge=True).problems([a, b, c]) == {}


def test_topic_that_meets_one_that_keeps_its_name_is_a_problem():
    a, d = TopicName.parse("a/n/x"), TopicName.parse("d/n/x")
    assert made(("a/(.*)", "d/$1")).problems([a, d]).keys() == {a, d}


@pytest.mark.parametrize("to", ["d/n/$1-partition-0", "non-persistent://d/n/$1", "d//$1"])
def test_name_that_no_topic_can_have_is_refused(to):
    topic, topic_map = TopicName.parse("a/n/x"), made(("a/n/(.*)", to))
    with pytest.raises(InvalidTopicName):
        topic_map.target(topic)
    assert f"give {topic} no name" in topic_map.problems([topic])[topic]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param({"rules": "a"}, "rules must be a list", id="no-list"),
        pytest.param({"rules": [{"from": "a"}]}, "give from and to", id="no-to"),
        pytest.param({"rules": [{"from": "a", "to": ""}]}, "give from and to", id="empty-to"),
        pytest.param({"rules": [{"from": "(", "to": "a"}]}, "is not a regular expression", id="no-pattern"),
        pytest.param({"rules": [{"from": "a/(.*)", "to": "b/$2"}]}, "names a group that", id="no-group"),
        pytest.param({"rules": [{"from": "a/(.*)", "to": "b/${x}"}]}, "names a group that", id="no-named-group"),
        pytest.param({"rules": [], "merge": "yes"}, "neither true nor false", id="merge"),
    ],
)
def test_rule_that_cannot_be_used_is_refused(table, expected):
    with pytest.raises(ValueError, match=expected):
        parse_topic_map(table)
