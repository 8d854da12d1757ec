"""What a copied entry carries, and which entries are not copied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import Position
from interpulse.replication.copy import (
    ORIGINAL_PRODUCER,
    ORIGINAL_SEQUENCE,
    SKIP_MARKER,
    SKIP_NOT_ADDRESSED,
    SKIP_REPLICATED,
    EntryMarker,
    is_carried_marker,
    is_copied_by_lane,
    renumber,
    replicator_position,
    skip_reason,
)
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.stamps import SOURCE_POSITION, source_positions


def metadata(**values):
    return pb.MessageMetadata(**{"producer_name": "app", "sequence_id": 7, "publish_time": 1, **values})


HERE = Position(12, 845)


def marked(source, position=HERE, sequence_id=12 << 32 | 845, **values):
    raw = source.SerializeToString()
    return pb.MessageMetadata.FromString(EntryMarker("lane", "east").mark(raw, source, position, sequence_id, **values))


def test_mark_sets_origin_lane_and_position():
    copy = marked(metadata(properties=[pb.KeyValue(key="k", value="v")]))
    assert (copy.producer_name, copy.sequence_id, copy.highest_sequence_id) == ("lane", 12 << 32 | 845, 12 << 32 | 845)
    assert copy.replicated_from == "east"
    assert {item.key: item.value for item in copy.properties} == {
        "k": "v",
        SOURCE_POSITION: "12:845",
        ORIGINAL_PRODUCER: "app",
        ORIGINAL_SEQUENCE: "7",
    }


@given(
    st.text(max_size=300),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.dictionaries(st.text(max_size=5), st.text(max_size=200), max_size=3),
)
def test_everything_else_stays(producer, sequence, ledger, entry, properties):
    source = metadata(
        producer_name=producer,
        sequence_id=sequence,
        properties=[pb.KeyValue(key=key, value=value) for key, value in properties.items()],
        partition_key="key",
        event_time=5,
        replicate_to=["west"],
        num_messages_in_batch=10,
        compression=pb.ZSTD,
        uncompressed_size=100,
        schema_version=b"\0" * 8,
        uuid="u",
        deliver_at_time=9,
    )
    copy = marked(source, Position(ledger, entry), ledger << 32 | entry, schema_version=source.schema_version)
    assert [item.value for item in copy.properties if item.key == SOURCE_POSITION] == [f"{ledger}:{entry}"]
    for name in ("replicated_from", "highest_sequence_id"):
        copy.ClearField(name)
    copy.producer_name, copy.sequence_id = producer, sequence
    del copy.properties[len(properties) :]
    assert copy == source


def test_schema_version_is_replaced_when_one_is_given():
    assert (
        marked(metadata(schema_version=b"\0" * 8), schema_version=b"\0" * 7 + b"\x05").schema_version
        == b"\0" * 7 + b"\x05"
    )


def test_schema_version_without_one_on_the_target_is_left_out():
    copy = marked(metadata(schema_version=b"\0" * 8, partition_key="key"))
    assert not copy.HasField("schema_version")
    assert copy.partition_key == "key"


def test_entry_published_anew_keeps_everything_but_name_numbers_and_transaction():
    source = metadata(num_messages_in_batch=3, partition_key="key", txnid_least_bits=1, schema_version=b"\0" * 8)
    raw = source.SerializeToString()
    again = pb.MessageMetadata.FromString(renumber(raw, source, "anew", 40, b"\1" * 8))
    assert (again.producer_name, again.sequence_id, again.highest_sequence_id) == ("anew", 40, 42)
    assert again.schema_version == b"\1" * 8
    assert not again.HasField("txnid_least_bits")
    assert (again.partition_key, again.publish_time) == ("key", 1)


def test_transaction_marks_are_removed():
    copy = marked(metadata(txnid_least_bits=1, txnid_most_bits=2, partition_key="key"))
    assert not copy.HasField("txnid_least_bits")
    assert not copy.HasField("txnid_most_bits")
    assert copy.partition_key == "key"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, None),
        ({"replicated_from": "north"}, SKIP_REPLICATED),
        ({"replicate_to": ["west"]}, None),
        ({"replicate_to": ["north"]}, SKIP_NOT_ADDRESSED),
        ({"replicate_to": ["__local__"]}, SKIP_NOT_ADDRESSED),
        ({"marker_type": 10}, SKIP_MARKER),
    ],
)
def test_skip_rules(values, expected):
    assert skip_reason(metadata(**values), "west") == expected


@pytest.mark.parametrize(
    ("values", "carried"),
    [
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_RESPONSE, "replicate_to": ["west"]}, True),
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_RESPONSE, "replicate_to": ["north"]}, False),
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_UPDATE}, True),
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_UPDATE, "replicated_from": "west"}, False),
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST}, False),
        ({"marker_type": pb.REPLICATED_SUBSCRIPTION_SNAPSHOT, "replicate_to": ["east"]}, False),
        ({"marker_type": pb.TXN_COMMIT}, False),
        ({}, False),
    ],
)
def test_markers_for_other_clusters_are_carried(values, carried):
    assert is_carried_marker(metadata(**values), "west") == carried
    assert not is_carried_marker(metadata(**values), None)


def test_carried_marker_has_the_marks_of_a_replicator_and_keeps_its_name_and_number():
    marker = metadata(marker_type=11, producer_name="pulsar.marker", sequence_id=0)
    copy = pb.MessageMetadata.FromString(EntryMarker("lane", "east").mark_carried(marker.SerializeToString(), (3, 11)))
    assert (copy.producer_name, copy.sequence_id, copy.replicated_from) == ("pulsar.marker", 0, "east")
    assert [(each.key, each.value) for each in copy.properties] == [("__MSG_PROP_REPL_SOURCE_POSITION", "3:11")]
    assert not copy.HasField("highest_sequence_id")


FORWARDED = {"replicated_from": "east", "producer_name": "interpulse.p.east-->middle.e0"}


@pytest.mark.parametrize(
    ("values", "target", "reason"),
    [
        pytest.param(FORWARDED, "west", None, id="sent-on"),
        pytest.param(FORWARDED, "east", SKIP_REPLICATED, id="published-there"),
        pytest.param(
            {"replicated_from": "north", "producer_name": "pulsar.repl.east-->middle"},
            "east",
            SKIP_REPLICATED,
            id="came-from-there",
        ),
        pytest.param({**FORWARDED, "replicate_to": ["east"]}, "west", SKIP_NOT_ADDRESSED, id="not-addressed"),
        pytest.param({**FORWARDED, "marker_type": 1}, "west", SKIP_MARKER, id="marker"),
        pytest.param({}, "west", None, id="own"),
    ],
)
def test_cluster_in_the_middle_of_a_chain_sends_on_what_came_from_another_one(values, target, reason):
    assert skip_reason(metadata(**values), target, forwarded_by="middle") == reason


@pytest.mark.parametrize(
    ("producer", "copied"),
    [
        ("interpulse.p.east-->middle.e0", True),
        ("interpulse.p.east-->middle.e0.1a2b3c4d", True),
        ("pulsar.repl.east-->middle", True),
        ("interpulse.p.far-east-->middle.e0", False),
        ("interpulse.p.east-->middle2.e0", False),
        ("app", False),
    ],
)
def test_lane_names_the_clusters_it_copies_between(producer, copied):
    assert is_copied_by_lane(metadata(producer_name=producer), "east", "middle") == copied


def test_copy_of_a_copy_keeps_its_origin_and_its_first_producer():
    first = marked(metadata(properties=[pb.KeyValue(key="k", value="v")]))
    second = marked(first, Position(3, 4), 3 << 32 | 4)
    assert (second.replicated_from, second.producer_name) == ("east", "lane")
    assert (second.sequence_id, second.highest_sequence_id) == (3 << 32 | 4, 3 << 32 | 4)
    assert [(item.key, item.value) for item in second.properties] == [
        ("k", "v"),
        (SOURCE_POSITION, "3:4"),
        (ORIGINAL_PRODUCER, "app"),
        (ORIGINAL_SEQUENCE, "7"),
    ]


def test_copy_of_what_a_pulsar_replicated_names_its_producer():
    copy = marked(metadata(replicated_from="far", properties=[pb.KeyValue(key=SOURCE_POSITION, value="9:9")]))
    assert copy.replicated_from == "far"
    assert {item.key: item.value for item in copy.properties} == {
        SOURCE_POSITION: "12:845",
        ORIGINAL_PRODUCER: "app",
        ORIGINAL_SEQUENCE: "7",
    }


def positions(*values):
    return [pb.KeyValue(key=SOURCE_POSITION, value=value) for value in values]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), []),
        (("12:845",), [HERE]),
        (("0:0", f"{2**63 - 1}:{2**63 - 1}"), [Position(0, 0), Position(2**63 - 1, 2**63 - 1)]),
        (("12", "12:", ":845", "12:845:1", "+1:2", "-1:-1", "a:b", "", "\u0661:2", f"{2**63}:0", "12:845"), [HERE]),
    ],
    ids=["none", "one", "several", "what-is-no-position"],
)
def test_source_positions_in_their_order(values, expected):
    assert source_positions(metadata(properties=[pb.KeyValue(key="k", value="1:1"), *positions(*values)])) == expected


def test_source_position_in_bytes_that_are_no_text_is_none():
    raw = metadata().SerializeToString() + b"\x22\x25\x0a\x1f" + SOURCE_POSITION.encode() + b"\x12\x02\xff\xfe"
    assert source_positions(pb.MessageMetadata.FromString(raw)) == []


def test_replicator_position_is_the_last_one_of_an_entry_that_a_replicator_wrote():
    assert replicator_position(metadata(replicated_from="east", properties=positions("70:1", "12:845"))) == HERE
    assert replicator_position(metadata(replicated_from="east")) is None
    assert replicator_position(metadata(properties=positions("12:845"))) is None, "an application passed it on"
    assert replicator_position(marked(metadata())) is None, "a lane numbers its entries"


def test_entry_published_anew_is_not_taken_for_one_of_the_replicator():
    copied = metadata(replicated_from="east", properties=[pb.KeyValue(key="k", value="v"), *positions("12:845")])
    anew = pb.MessageMetadata.FromString(renumber(copied.SerializeToString(), copied, "sink", 40))
    assert replicator_position(anew) is None
    assert (anew.replicated_from, [(item.key, item.value) for item in anew.properties]) == ("east", [("k", "v")])
