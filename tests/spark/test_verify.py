"""The comparison of topics in a local Spark: one broker has both sides, and copies are altered on purpose."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.clock import now_ms
from interpulse.model.names import TopicName
from interpulse.spark.options.access import Access
from interpulse.spark.verify.comparisons import CONTENT, POSITION, Comparison, Side, TopicPair, VerifyError
from interpulse.spark.verify.verification import verify
from tests.support.altered_copies import copy_partition

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def target(broker, topic):
    name = f"{topic}-copy"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(name), 4))
    return name


def compared(broker, *pairs, match=POSITION, last_ms=None):
    sides = [Side(cluster=name, service_url=broker.service_url, access=Access()) for name in ("east", "west")]
    at_ms = now_ms()
    return Comparison(
        source=sides[0],
        target=sides[1],
        topics=tuple(TopicPair(*pair) for pair in pairs),
        match=match,
        since_ms=None if last_ms is None else at_ms - last_ms,
        at_ms=at_ms,
    )


def publish(client, topic, numbers, **options):
    with client.create_producer(topic, **options) as producer:
        for number in numbers:
            producer.send_async(f"value {number}".encode(), key=f"k{number % 10}", properties={"n": str(number)})
        producer.flush()


def copy(broker, source, target, **alterations):
    """``alterations`` by partition, as ``p0``."""
    for index in range(4):
        alter = alterations.get(f"p{index}", list)
        names = [f"{name}-partition-{index}" for name in (source, target)]
        asyncio.run(copy_partition(broker.service_url, broker.service_url, *names, alter=alter))


def ignore(done, total):
    assert 0 <= done <= total


def problems(report):
    return {
        name.rpartition("-")[2]: {key: count for key, count in topic.problems.items() if count}
        for name, topic in report.topics.items()
        if not topic.is_same
    }


def test_verify_when_everything_was_copied_then_is_the_same(spark, hdfs, broker, client, topic, target, tmp_path):
    publish(client, topic, range(100))
    publish(client, topic, range(100, 300), batching_enabled=False)
    copy(broker, topic, target)
    report = verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)
    assert report.is_same
    assert report.examples == []
    counts = report.topics.values()
    assert len(counts) == 4
    assert sum(each.originals for each in counts) == sum(each.copies for each in counts) > 200


def test_verify_when_copies_are_altered_then_finds_each_problem(spark, broker, client, topic, target, tmp_path):
    publish(client, topic, range(200), batching_enabled=False)
    entries = {}

    def remember(index, change):
        def alter(originals):
            entries[index] = originals
            return change(originals)

        return alter

    def change_payload(originals):
        return [*originals[:-1], originals[-1]._replace(payload=b"other")]

    copy(
        broker,
        topic,
        target,
        p0=remember(0, lambda all_: [*all_[:3], *all_[5:-2]]),
        p1=remember(1, lambda all_: [*all_[:4], *all_[2:]]),
        p2=remember(2, lambda all_: [all_[1], all_[0], *all_[2:]]),
        p3=remember(3, change_payload),
    )
    report = verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)
    assert problems(report) == {
        "0": {"missing": 4},
        "1": {"duplicated": 2},
        "2": {"reordered": 1},
        "3": {"different": 1},
    }
    found = {(each["topic"][-1], each["source_place"], each["detail"]) for each in report.examples}
    places = [f"{each.position.ledger}:{each.position.entry}" for each in entries[0]]
    assert {("0", places[3], "between copies"), ("2", str(entries[2][0].position), None)} <= found
    assert ("0", places[-1], "behind the last copy: perhaps still on its way") in found
    kept = spark.read.parquet(str(tmp_path / "run" / "findings")).count()
    assert kept == len(report.examples) == 8
    assert json.loads((tmp_path / "run" / "report.json").read_text())["result"] == "different"
    with pytest.raises(VerifyError, match="holds the result of a finished run"):
        verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)


def test_verify_when_the_target_has_more_then_says_where_it_comes_from(spark, broker, client, topic, target, tmp_path):
    publish(client, topic, range(40), batching_enabled=False)
    publish(client, target, range(5), batching_enabled=False)  # the target's own

    def invent(originals):
        return [*originals[:-2], originals[-2]._replace(position=originals[-2].position._replace(entry=10**6))]

    copy(broker, topic, target, p0=invent)
    report = verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)
    assert problems(report) == {"0": {"missing": 2}}
    assert sum(each.newer for each in report.topics.values()) == 1
    absent = verify(spark, compared(broker, (topic, f"{topic}-absent")), tmp_path / "absent", ignore)
    assert sum(each.problems["missing"] for each in absent.topics.values()) == 40
    with pytest.raises(VerifyError, match="absent: not found on east"):
        verify(spark, compared(broker, (f"{topic}-absent", topic)), tmp_path / "none", ignore)


def test_verify_when_broken_off_then_does_not_read_finished_partitions_again(
    spark, broker, client, topic, target, tmp_path, monkeypatch
):
    publish(client, topic, range(20))
    copy(broker, topic, target)
    comparison = compared(broker, (topic, target))

    def stop(done, total):
        if done == 4:  # the source is read
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(spark, comparison, tmp_path / "run", stop)
    publish(client, topic, range(20))
    with pytest.raises(VerifyError, match="broken off, of other clusters or topics"):
        verify(spark, compared(broker, (topic, topic)), tmp_path / "run", ignore)
    report = verify(spark, comparison, tmp_path / "run", ignore)
    assert report.is_same
    assert sum(each.copies for each in report.topics.values()) == sum(each.originals for each in report.topics.values())


def test_verify_when_only_the_last_hour_is_asked_for_then_older_copies_are_not_judged(
    spark, broker, client, topic, target, tmp_path
):
    publish(client, topic, range(20), batching_enabled=False)
    copy(broker, topic, target)
    hour = verify(spark, compared(broker, (topic, target), last_ms=3_600_000), tmp_path / "hour", ignore)
    assert hour.is_same
    assert sum(each.originals for each in hour.topics.values()) == 20
    moment = verify(spark, compared(broker, (topic, target), last_ms=1), tmp_path / "moment", ignore)
    assert sum(each.originals for each in moment.topics.values()) == 0
    assert moment.is_same


def test_verify_by_content_when_another_tool_mirrored_then_finds_each_problem(spark, broker, client, topic, tmp_path):
    mirror = f"{topic}-mirror"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(mirror), 2))
    publish(client, topic, range(100))
    publish(client, mirror, range(100), batching_enabled=False)
    same = verify(spark, compared(broker, (topic, mirror), match=CONTENT), tmp_path / "same", ignore)
    assert same.is_same
    assert same.topics[topic].originals == same.topics[topic].copies == 100
    publish(client, topic, [100, 110, 111])
    publish(client, mirror, [110, 100, 7])
    with client.create_producer(mirror) as producer:
        producer.send(b"altered", key="k1")
        producer.send(b"without key")
    found = verify(spark, compared(broker, (topic, mirror), match=CONTENT), tmp_path / "other", ignore)
    counts = {key: count for key, count in found.topics[topic].problems.items() if count}
    assert counts == {"reordered": 1, "different": 1, "duplicated": 1, "extra": 1}
    assert {(each["problem"], each["key"]) for each in found.examples} == {
        ("reordered", "k0"),
        ("different", "k1"),
        ("duplicated", "k7"),
        ("extra", None),
    }
