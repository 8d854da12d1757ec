"""Which topics a pattern means, as a real Pulsar 5.0.0-M1 answered for the same names."""

import pytest

from interpulse.broker.topics.lookup.topic_patterns import TopicPattern
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        pytest.param("persistent://a/b/foo.*", "persistent://a/b/foo-1", True, id="complete"),
        pytest.param("a/b/foo.*", "persistent://a/b/foo-1", True, id="without-domain"),
        pytest.param("foo.*", "persistent://a/b/foo-1", False, id="topic-alone"),
        pytest.param("non-persistent://a/b/foo.*", "persistent://a/b/foo-1", True, id="domain-plays-no-part"),
        pytest.param("^persistent://a/b/foo-1$", "persistent://a/b/foo-1", True, id="anchors"),
        pytest.param("a/b/foo", "persistent://a/b/foo-1", False, id="whole-name"),
        pytest.param("a/b/foo-p", "persistent://a/b/foo-p-partition-0", True, id="partition-has-its-topics-name"),
        pytest.param("a/b/foo-p-partition-0", "persistent://a/b/foo-p-partition-0", False, id="partition-itself"),
        pytest.param(".*", "persistent://a/b/x", True, id="everything"),
        pytest.param("", "persistent://a/b/x", False, id="empty"),
        pytest.param("a/b/ü{2}", "persistent://a/b/üü", True, id="letters-beyond-ascii"),
    ],
)
def test_pattern_when_asked_for_a_topic_then_answers_as_pulsar(pattern: str, topic: str, matches: bool) -> None:
    assert TopicPattern(pattern).matches(TopicName.parse(topic)) is matches


@pytest.mark.parametrize("text", ["(", "a/b/(?=x).*", r"(a)\1", "a{1,100000}", "(((a{100}){100}){100})"])
def test_pattern_when_it_cannot_be_matched_in_linear_time_then_refused_with_the_reason(text: str) -> None:
    with pytest.raises(InvalidTopicName) as refused:
        TopicPattern(text)
    assert str(refused.value).startswith(f"Invalid topics pattern: {text}: ")


def test_pattern_when_it_would_ruin_a_backtracking_engine_then_answers_at_once() -> None:
    topic = TopicName.parse("persistent://a/b/" + "x" * 5000 + "!")
    assert not TopicPattern("a/b/(x+x+)+(x|xx)*y").matches(topic)


def test_pattern_when_refused_then_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidTopicName):
        TopicPattern("(")
    assert capfd.readouterr() == ("", "")
