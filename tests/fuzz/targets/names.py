"""Names and patterns as clients write them: refused, or the same when they are written and read again."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.broker.topics.lookup.topic_watches import TopicPattern
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName, decode_local_name, encode_local_name

PATTERN_LENGTH_MAX = 50


def one(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    try:
        topic = TopicName.parse(text)
    except PulsarError as error:
        assert str(error)
    else:
        check(topic)
    try:
        namespace = NamespaceName.parse(text)
        assert NamespaceName.parse(str(namespace)) == namespace
    except PulsarError as error:
        assert str(error)
    try:
        TopicPattern(text[:PATTERN_LENGTH_MAX]).matches(TopicName.parse("persistent://public/default/aaaaaaaaaaaaaaa"))
    except PulsarError as error:
        assert str(error)


def check(topic: TopicName) -> None:
    assert TopicName.parse(str(topic)) == topic
    if (
        topic.is_partition and not topic.base.is_partition
    ):  # a name with two suffixes is its own partition, as in Pulsar
        assert topic.base.partition(topic.partition_index) == topic
    assert topic.creatable is not bool(topic.creation_problem)
    if topic.creatable:
        assert decode_local_name(encode_local_name(topic.local_name)) == topic.local_name
        assert TopicName.from_log_name(topic.log_name) == topic


def seeds() -> Iterator[bytes]:
    yield b"persistent://public/default/t-partition-3"
    yield b"non-persistent://a/b/\xc3\xa4"
    yield b"persistent://prop/cluster/ns/t"
    yield b"t"
    yield b"public/default"
    yield b"public/default/(a|b)*.[^c]+$"
