"""Names: Pulsar's rules, and where ours are stricter."""

from __future__ import annotations

import gc
import pickle
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import InvalidTopicName, PreconditionFailed
from interpulse.model.names import NamespaceName, TopicName, check_entity_name, decode_local_name, encode_local_name
from tests.scenarios.topic_names import ROWS, Row

LOCAL_NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("topic", "persistent://public/default/topic"),
        ("tenant/ns/topic", "persistent://tenant/ns/topic"),
        ("persistent://tenant/ns/topic", "persistent://tenant/ns/topic"),
        ("non-persistent://tenant/ns/topic", "non-persistent://tenant/ns/topic"),
        ("PERSISTENT://tenant/ns/topic", "persistent://tenant/ns/topic"),
        ("a b+c%", "persistent://public/default/a b+c%"),
        ("t_-=:./n_-=:./topic", "persistent://t_-=:./n_-=:./topic"),
    ],
)
def test_parse_when_the_text_is_a_name_then_is_complete(text: str, complete: str) -> None:
    assert str(TopicName.parse(text)) == complete
    assert TopicName.parse(complete) == TopicName.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a/b",
        "a/b/c/d",
        "persistent://t/c/ns/topic",
        "persistent://t//x",
        "persistent:///ns/x",
        "persistent://t/ns/",
        "persistent://t/ns/x/",
        "persistent://t/ns/ ",
        "://x",
        "other://t/ns/x",
        "topic://t/ns/x",
        "segment://t/ns/x",
        "t\n/ns/x",
        "tén/ns/x",
        "t/n s/x",
        "-partition-3",
    ],
)
def test_parse_when_the_text_is_no_name_then_is_refused_and_named(text: str) -> None:
    with pytest.raises(InvalidTopicName) as refusal:
        TopicName.parse(text)
    assert text in str(refusal.value)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ascii(row.text))
def test_name_when_in_the_table_then_is_what_the_table_says(row: Row) -> None:
    if row.complete is None:
        with pytest.raises(InvalidTopicName):
            TopicName.parse(row.text)
        return
    name = TopicName.parse(row.text)
    assert (str(name), name.partition_index, name.is_partition) == (row.complete, row.index, row.index >= 0)
    assert (name.is_system, name.is_transaction_internal) == (row.system, row.internal)
    assert name.creatable == row.creatable


def test_name_when_it_cannot_be_encoded_then_is_refused() -> None:
    with pytest.raises(InvalidTopicName, match=r"'a\\udcff': it is not valid UTF-8"):
        TopicName.parse("a\udcff")


def test_name_when_very_long_then_is_read_and_not_remembered() -> None:
    text = "t/n/" + "x" * 65_536 + "-partition-3"
    name = TopicName.parse(text)
    assert (name.partition_index, len(name.base.local_name)) == (3, 65_536)
    assert TopicName.parse(text) is not name
    assert TopicName.parse("t/n/short") is TopicName.parse("t/n/short")


def test_parse_when_the_old_cluster_form_then_shows_the_new_one() -> None:
    with pytest.raises(InvalidTopicName, match="persistent://t/ns/topic"):
        TopicName.parse("persistent://t/c/ns/topic")
    with pytest.raises(InvalidTopicName, match="use t/ns"):
        NamespaceName.parse("t/c/ns")


@pytest.mark.parametrize(
    ("local_name", "index", "base"),
    [
        ("t-partition-0", 0, "t"),
        ("t-partition-12", 12, "t"),
        ("t-partition-2147483647", 2147483647, "t"),
        ("t-partition-1-partition-2", 2, "t-partition-1"),
        *((name, -1, name) for name in ("t-partition-01", "t-partition-00", "t-partition--1", "t-partition-+1")),
        *((name, -1, name) for name in ("t-partition- 12", "t-partition-12 ", "t-partition-abc", "t-partition-")),
        *((name, -1, name) for name in ("t-partition-1&", "t-partition-1_0", "t-partition-٣", "t-partition-1\n")),
        *((name, -1, name) for name in ("t-partition-2147483648", "t-partition-0-DLQ", "t-partition-0-sub-RETRY")),
    ],
)
def test_partition_suffix_when_read_then_only_the_canonical_form_counts(local_name: str, index: int, base: str) -> None:
    name = TopicName.parse(f"t/n/{local_name}")
    assert name.partition_index == index
    assert name.is_partition == (index >= 0)
    assert name.base.local_name == base


@pytest.mark.parametrize("local_name", ["t", "t-partition-3"])
def test_name_when_unreferenced_then_freed_immediately(local_name: str) -> None:
    name = TopicName.of("persistent", "public", "default", local_name)
    assert (name.base.local_name, name.log_name) == ("t", f"public/default/persistent/{local_name}")
    kept = ref(name)
    gc.disable()
    try:
        del name
        assert kept() is None
    finally:
        gc.enable()


def test_partition_when_the_name_has_that_suffix_then_is_itself() -> None:
    topic = TopicName.parse("t")
    assert topic.partition(3).local_name == "t-partition-3"
    assert topic.partition(3).partition(3) == topic.partition(3)
    assert topic.partition(3).base == topic
    letters = TopicName.parse("t-partition-0-DLQ")
    assert letters.partition(0).local_name == "t-partition-0-DLQ-partition-0"


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("pulsar/system/anything", True),
        ("pulsar/127.0.0.1:8080/healthcheck", True),
        ("sla-monitor/host:8080/x", True),
        ("t/n/__change_events", True),
        ("t/n/__change_events-partition-1", True),
        ("t/n/__transaction_buffer_snapshot", True),
        ("t/n/sub__transaction_pending_ack", True),
        ("persistent://pulsar/system/transaction_coordinator_assign", True),
        ("t/n/__transaction_log_1", False),
        ("t/n/__other", False),
        ("pulsar/default/x", False),
    ],
)
def test_system_names_when_asked_then_follow_the_table(text: str, system: bool) -> None:
    assert TopicName.parse(text).is_system is system


@pytest.mark.parametrize(("text", "letter"), [("t-DLQ", True), ("t-RETRY", True), ("t-dlq", False), ("DLQ-t", False)])
def test_dead_letter_and_retry_topics_then_known_by_their_suffix(text: str, letter: bool) -> None:
    assert TopicName.parse(text).is_dead_letter_or_retry is letter


@pytest.mark.parametrize(
    ("local_name", "creatable"),
    [
        pytest.param("x" * 3_900, True, id="long"),
        pytest.param("x" * 3_900 + "-partition-2147483647", True, id="partition of a long one"),
        pytest.param("x" * 4_000, False, id="too long"),
        pytest.param("🚀" * 300, True, id="long when encoded"),
        pytest.param("🚀" * 400, False, id="too long when encoded"),
        pytest.param("x" * 65_536, False, id="64 KB"),
        pytest.param("a\0b", False, id="NUL"),
        pytest.param("a\r\nb", True, id="line break"),
        pytest.param("..", True, id="dots"),
    ],
)
def test_name_when_too_long_or_with_nul_then_can_be_read_but_not_created(local_name: str, creatable: bool) -> None:
    assert TopicName.of("persistent", "t", "n", local_name).creatable is creatable


@pytest.mark.parametrize(("text", "creatable"), [("x", True), (" x", True), ("x ", False), ("x\t", False)])
def test_blanks_when_at_the_end_then_the_name_can_be_read_but_not_created(text: str, creatable: bool) -> None:
    assert TopicName.of("persistent", "t", "n", text).creatable is creatable


def test_derived_names_when_the_local_name_is_unusual_then_are_encoded_like_pulsar() -> None:
    name = TopicName.parse("non-persistent://t/n/a b:c*é~")
    assert name.encoded == "a+b%3Ac*%C3%A9%7E"
    assert name.log_name == "t/n/non-persistent/a+b%3Ac*%C3%A9%7E"
    assert name.rest_path == "non-persistent/t/n/a+b%3Ac*%C3%A9%7E"
    assert name.partition(2).schema_id == "t/n/a+b%3Ac*%C3%A9%7E"


@given(LOCAL_NAMES)
def test_local_name_when_encoded_then_decodes_to_itself(local_name: str) -> None:
    assert decode_local_name(encode_local_name(local_name)) == local_name
    assert "/" not in encode_local_name(local_name)


@given(LOCAL_NAMES)
def test_any_name_when_made_then_its_other_forms_lead_back(local_name: str) -> None:
    try:
        name = TopicName.of("persistent", "t", "n", local_name)
    except InvalidTopicName:
        assert "-partition-" in local_name or not local_name.strip()
        return
    assert TopicName.parse(str(name)) == name
    assert TopicName.from_log_name(name.log_name) == name
    assert pickle.loads(pickle.dumps(name)) == name


@pytest.mark.parametrize("name", ["a", "us-west_1", "A=b:c.d", "x" * 1000])
def test_name_when_of_its_characters_then_may_be_taken(name: str) -> None:
    check_entity_name("Tenant", name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must be letters, digits and _-=:. only"),
        ("a b", "'a b' must be letters"),
        ("a/b", "'a/b' must be letters"),
        ("ä", "'ä' must be letters"),
        ("x" * 1001, "of 1001 characters: it may have 1000"),
    ],
)
def test_name_when_it_may_not_be_taken_then_says_why(name: str, reason: str) -> None:
    with pytest.raises(PreconditionFailed, match=f"Tenant name .*{reason}"):
        check_entity_name("Tenant", name)
