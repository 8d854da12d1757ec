"""Values as users type them."""

import click
import pytest

from interpulse.cli.support.params import MESSAGE_ID, NAMESPACE, PAIRS, SIZE, STRINGS, TIME, TOPIC, joined_pairs
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from interpulse.model.names import NamespaceName, TopicName


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("-1", -1), ("4096", 4096), ("100K", 102_400), ("10M", 10 * 2**20), ("10m", 10 * 2**20), ("2T", 2**41)],
)
def test_size_when_valid_then_is_bytes(text: str, count: int) -> None:
    assert SIZE.convert(text, None, None) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("-1", -1), ("-1s", -1), ("30", 30), ("100m", 6000), ("3h", 10_800), ("5w", 3_024_000)],
)
def test_time_when_valid_then_is_seconds(text: str, count: int) -> None:
    assert TIME.convert(text, None, None) == count


@pytest.mark.parametrize("text", ["", "M", "1.5M", "10X", "10 M", "1_0", "ten"])
def test_size_when_malformed_then_shows_valid_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match="valid forms are 4096, 100K"):
        SIZE.convert(text, None, None)


@pytest.mark.parametrize("text", ["3M0", "3k", ""])
def test_time_when_malformed_then_shows_valid_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match="valid forms are 30"):
        TIME.convert(text, None, None)


def test_message_id_when_named_or_given_then_is_a_position() -> None:
    assert MESSAGE_ID.convert("latest", None, None) == MessageId(LATEST.ledger, LATEST.entry)
    assert MESSAGE_ID.convert("earliest", None, None) == MessageId(EARLIEST.ledger, EARLIEST.entry)
    assert MESSAGE_ID.convert("3:4", None, None) == MessageId(3, 4)


@pytest.mark.parametrize("text", ["3", "a:b", "first", "1:2:3"])
def test_message_id_when_malformed_then_says_what_is_expected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="ledgerId:entryId"):
        MESSAGE_ID.convert(text, None, None)


def test_names_when_valid_then_are_parsed() -> None:
    assert TOPIC.convert("x", None, None) == TopicName.parse("persistent://public/default/x")
    assert NAMESPACE.convert("a/b", None, None) == NamespaceName("a", "b")


@pytest.mark.parametrize("kind", [TOPIC, NAMESPACE])
def test_name_when_malformed_then_says_why(kind: click.ParamType[object]) -> None:
    with pytest.raises(click.BadParameter, match=r"Invalid (topic|namespace) name: a/b/c/d"):
        kind.convert("a/b/c/d", None, None)


def test_list_when_given_then_is_split_at_commas() -> None:
    assert STRINGS.convert("a, b,,c", None, None) == ["a", "b", "c"]


def test_pairs_when_given_several_times_then_the_last_counts() -> None:
    parts = (PAIRS.convert("a=1,b=x=y", None, None), PAIRS.convert("a=2,c=", None, None))
    assert joined_pairs(parts) == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=x", "a=1,b"])
def test_pairs_when_malformed_then_says_what_is_expected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="key=value"):
        PAIRS.convert(text, None, None)
