"""Consistency refusals are counted, and warned about with a limit."""

from __future__ import annotations

import logging
import re

import pytest

from interpulse.broker.inconsistencies import InconsistencyCounters, remedy
from interpulse.model.errors import Inconsistency, TopicInconsistent, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.topic_view import TopicView, check_consistency

MISSING, BEYOND, FOUND = Inconsistency
X = "persistent://public/default/x"


class Story:
    """Counters with a clock to turn; remembers the warnings."""

    def __init__(self, caplog: pytest.LogCaptureFixture, *, topics_max: int = 10) -> None:
        self.now_ms = 1_000_000
        self.inconsistencies = InconsistencyCounters(lambda: self.now_ms, period_ms=60_000, topics_max=topics_max)
        self._caplog = caplog

    def refuse(self, topic: str = X, kind: Inconsistency = FOUND, *, times: int = 1) -> list[str]:
        """The warnings this gave."""
        self._caplog.clear()
        for _ in range(times):
            self.inconsistencies.note(
                TopicInconsistent(f"no: {topic}", kind, topic), lambda: "producer p at /127.0.0.1:5"
            )
        return list(self._caplog.messages)


@pytest.fixture
def story(caplog: pytest.LogCaptureFixture) -> Story:
    caplog.set_level(logging.WARNING)
    return Story(caplog)


@pytest.mark.parametrize(
    ("name", "partitions", "kind"),
    [
        pytest.param("x-partition-0", 0, MISSING, id="partition-name-no-metadata"),
        pytest.param("x-partition-3", 3, BEYOND, id="partition-name-index-too-high"),
        pytest.param("x", 3, FOUND, id="base-name-with-metadata"),
    ],
)
def test_rule_says_which_kind_of_refusal_it_is_and_of_which_topic(
    name: str, partitions: int, kind: Inconsistency
) -> None:
    metadata = {TopicName.parse("x"): PartitionedTopicMetadata(partitions)} if partitions else {}
    with pytest.raises(TopicInconsistent) as refused:
        check_consistency(TopicView(TopicName.parse(name), metadata=metadata))
    assert (refused.value.kind, refused.value.topic) == (kind, f"persistent://public/default/{name}")


def test_refusal_is_one_warning_with_topic_client_and_remedy(story: Story) -> None:
    (line,) = story.refuse(f"{X}-partition-0", MISSING)
    assert f"topic={X}-partition-0" in line
    assert "client=producer p at /127.0.0.1:5" in line
    assert f"topics create-partitioned-topic {X} -p N" in line
    assert story.inconsistencies.counts == {MISSING: 1, BEYOND: 0, FOUND: 0}


def test_warnings_of_one_topic_and_kind_come_once_per_period_and_say_how_many_were_left_out(story: Story) -> None:
    assert len(story.refuse(times=5)) == 1
    story.now_ms += 59_999
    assert story.refuse() == []
    story.now_ms += 1
    (line,) = story.refuse()
    assert "suppressed=5" in line
    story.now_ms += 60_000
    (line,) = story.refuse()
    assert "suppressed=0" in line
    assert story.inconsistencies.counts[FOUND] == 8


def test_another_topic_and_another_kind_have_their_own_warning(story: Story) -> None:
    assert len(story.refuse(X) + story.refuse(f"{X}2") + story.refuse(f"{X}-partition-1", BEYOND)) == 3
    assert len(story.refuse(f"{X}-partition-1", MISSING)) == 1


def test_more_topics_than_are_remembered_are_counted_and_mentioned_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    story = Story(caplog, topics_max=2)
    assert len(story.refuse("a", times=3) + story.refuse("b")) == 2
    assert story.refuse("c", times=4) == []
    story.now_ms += 60_000
    (line,) = story.refuse("d")
    assert "suppressed=0 unmentioned=6" in line  # the two of "a", which made room, and the four of "c"
    assert story.inconsistencies.counts[FOUND] == 9


def test_what_is_remembered_stays_bounded_and_cheap_however_many_topics_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story(caplog, topics_max=3)
    for number in range(1000):
        story.refuse(f"t{number}")
        story.now_ms += 30_000
    assert len(story.inconsistencies._warned) == 3


def test_names_that_would_break_or_flood_the_log_are_shown_so_that_they_do_not(story: Story) -> None:
    (line,) = story.refuse(f"{X}\nERROR all is lost")
    assert "\n" not in line
    assert r"\nERROR" in line
    (line,) = story.refuse(X + "x" * 60_000)
    assert len(line) < 4000


def test_other_errors_and_refusals_of_other_clusters_are_passed_over(story: Story) -> None:
    story.inconsistencies.note(TopicNotFound("x"), lambda: "admin")
    story.inconsistencies.note(
        TopicInconsistent("Partition metadata not found for the partitioned topic: x"), lambda: "admin"
    )
    assert sum(story.inconsistencies.counts.values()) == 0


@pytest.mark.parametrize("kind", Inconsistency)
def test_remedy_names_commands_that_exist_and_the_topic(kind: Inconsistency) -> None:
    from interpulse.cli.admin.topics.topics import topics

    advice = remedy(kind, f"{X}-partition-7")
    commands = re.findall(r"topics ([a-z-]+)", advice)
    assert commands
    assert set(commands) <= set(topics.commands)
    assert X in advice
