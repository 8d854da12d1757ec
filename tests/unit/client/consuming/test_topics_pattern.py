"""Expressions that choose topics."""

import re

import pytest

from interpulse.client.consuming.topics_pattern import TopicsPattern
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("persistent://a/b/f-.*", "persistent://a/b/f-.*"),
        ("a/b/f-.*", "persistent://a/b/f-.*"),
        ("f-.*", "persistent://public/default/f-.*"),
        ("^persistent://a/b/f-.*$", "persistent://a/b/f-.*$"),
        ("non-persistent://a/b/f", "persistent://a/b/f"),
    ],
)
def test_pattern_when_written_in_any_form_of_a_name_then_brokers_are_told_the_complete_one(
    written: str, told: str
) -> None:
    pattern = TopicsPattern.of(re.compile(written))
    assert (pattern.text, f"persistent://{pattern.namespace}/") == (told, told[: told.rindex("/") + 1])


@pytest.mark.parametrize("written", ["a/.*", "persistent://f", "persistent://.*/b/c", "a/b.*/c"])
def test_pattern_when_it_does_not_name_one_namespace_then_refused(written: str) -> None:
    with pytest.raises(InvalidTopicName):
        TopicsPattern.of(re.compile(written))


@pytest.mark.parametrize(
    ("written", "topic", "matches"),
    [
        ("a/b/f-.*", "persistent://a/b/f-1", True),
        ("a/b/f-.*", "persistent://a/b/g-1", False),
        ("a/b/f", "persistent://a/b/f-1", False),
        ("a/b/f|g", "persistent://a/b/g", True),
        ("a/b/f", "persistent://a/b/f-partition-3", True),
        ("a/b/f-partition-3", "persistent://a/b/f-partition-3", False),
        ("a/b/f.*", "non-persistent://a/b/f", True),
        ("a.c/b/f", "persistent://abc/b/f", False),
    ],
)
def test_pattern_when_asked_for_a_topic_then_the_whole_name_counts(written: str, topic: str, matches: bool) -> None:
    assert TopicsPattern.of(re.compile(written)).matches(TopicName.parse(topic)) is matches


def test_pattern_when_compiled_with_flags_then_keeps_them() -> None:
    assert TopicsPattern.of(re.compile("a/b/F", re.IGNORECASE)).matches(TopicName.parse("a/b/f"))
