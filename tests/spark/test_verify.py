"""The comparison of topics in a local Spark: one broker has both sides, and copies are altered on purpose."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

from interpulse.clock import now_ms
from interpulse.model.names import TopicName
from interpulse.spark.options.connection_options import Access
from interpulse.spark.verify.comparisons import CONTENT, POSITION, Comparison, Side, TopicPair, VerifyError
from interpulse.spark.verify.judging import SOURCE, TARGET, Problem, judge
from interpulse.spark.verify.verification import verify
from tests.support import judged_copies as model
from tests.support.altered_copies import copy_partition
from tests.support.judged_copies import Item
from tests.support.numbered_messages import publish

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


COLUMNS = (
    "topic STRING, key BINARY, side INT, identity BINARY, content BINARY, place STRING, overtaken BOOLEAN, "
    "partition INT, ledger BIGINT, entry BIGINT, batch INT"
)
CASES = {
    "nothing": ("", "", ""),
    "equal": ("abc", "abc", ""),
    "one is missing": ("abc", "ac", "missing b"),
    "all are missing": ("ab", "", "missing a, missing b"),
    "extra": ("", "ab", "extra a, extra b"),
    "duplicated": ("a", "aa", "duplicated a"),
    "a range came twice": ("abc", "ababc", "duplicated a, duplicated b"),
    "equal items are told apart by their number": ("aab", "aab", ""),
    "of equal items one is missing": ("aa", "a", "missing a"),
    "of equal items the second one is different": ("aab", "aAb", "different a"),
    "different": ("ab", "aB", "different b"),
    "one item, different": ("a", "A", "different a"),
    "reordered": ("abc", "acb", "reordered b"),
    "reordered and different": ("ab", "bA", "different a, reordered a"),
    "overtaken by another group": ("a", "<a", "reordered a"),
    "a repeat that is overtaken is a repeat": ("a", "a<a", "duplicated a"),
    "left over on both sides": ("ab", "ax", "different b"),
    "more left over here": ("abc", "ax", "different b, missing c"),
    "more left over there": ("ab", "axy", "different b, extra y"),
    "left over in turn": ("abcd", "xbdy", "different a, different c"),
}
"""One letter per item; a capital has another content, and an item behind ``<`` is overtaken."""


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


def copy(broker, source, target, **alterations):
    """``alterations`` by partition, as ``p0``."""
    for index in range(4):
        alter = alterations.get(f"p{index}", list)
        names = [f"{name}-partition-{index}" for name in (source, target)]
        asyncio.run(copy_partition(broker.service_url, broker.service_url, *names, alter=alter))


def ignore(done, total):
    assert 0 <= done <= total


def rows_of(topic, side, text):
    """One group, in the form of CASES."""
    overtaken = False
    for index, letter in enumerate(text):
        if letter != "<":
            identity, place = letter.lower(), f"{letter.lower()}{index}"
            values = (topic, b"k", side, identity.encode(), letter.encode(), place, overtaken)
            yield (*values, index // 6, 5 + index // 4, index, -1)
        overtaken = letter == "<"


def judged(spark, pairs):
    """What is wrong, as in CASES, with pairs of originals and copies; all of them in one job."""
    rows = [
        row
        for name, sides in pairs.items()
        for side, text in zip((SOURCE, TARGET), sides, strict=True)
        for row in rows_of(name, side, text)
    ]
    found: dict[str, list[Any]] = {name: [] for name in pairs}
    for row in judge(spark.createDataFrame(rows, COLUMNS)).collect():
        found[row.topic].append(f"{row.problem} {(row.source_place or row.target_place)[0]}")
    return found


def problems(report):
    return {
        name.rpartition("-")[2]: {key: topic[key] for key in Problem if topic[key]}
        for name, topic in report.topics.items()
        if any(topic[key] for key in Problem)
    }


def test_copies_when_judged_then_have_these_problems(spark):
    found = judged(spark, {name: case[:2] for name, case in CASES.items()})
    expected = {name: sorted(filter(None, case[2].split(", "))) for name, case in CASES.items()}
    assert {name: sorted(problems) for name, problems in found.items()} == expected


def test_copies_when_judged_then_spark_agrees_with_the_model(spark):
    """Groups chosen at random, some shuffled, some the same."""
    chosen = random.Random(15)
    texts = ["".join(chosen.choices("abcdABCD<", k=chosen.randrange(9))) for _ in range(400)]
    pairs = {f"any {number}": (text, chosen.choice([text, *texts])) for number, text in enumerate(texts)}
    pairs |= {f"shuffled {number}": ("abcdefgh", "".join(chosen.sample("abcdefgh", 8))) for number in range(50)}
    found = judged(spark, pairs)
    for name, sides in pairs.items():
        items = [
            [Item(*row[3:7]) for row in rows_of(name, side, text)]
            for side, text in zip((SOURCE, TARGET), sides, strict=True)
        ]
        expected = Counter(f"{each.problem} {each.shown.split()[1][0]}" for each in model.judge(*items))
        assert Counter(found[name]) == expected, sides


def test_verify_when_everything_was_copied_then_is_the_same(spark, hdfs, broker, client, topic, target, tmp_path):
    publish(client, topic, range(100), text="value {}", keys=10)
    publish(client, topic, range(100, 300), batching_enabled=False, text="value {}", keys=10)
    copy(broker, topic, target)
    report = verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)
    assert report.is_same
    assert report.examples == []
    counts = report.topics.values()
    assert len(counts) == 4
    assert sum(topic["originals"] for topic in counts) == sum(topic["copies"] for topic in counts) > 200


def test_verify_when_copies_are_altered_then_finds_each_problem(spark, broker, client, topic, target, tmp_path):
    publish(client, topic, range(200), batching_enabled=False, text="value {}", keys=10)
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
    publish(client, topic, range(40), batching_enabled=False, text="value {}", keys=10)
    publish(client, target, range(5), batching_enabled=False, text="value {}", keys=10)  # the target's own

    def invent(originals):
        return [*originals[:-2], originals[-2]._replace(position=originals[-2].position._replace(entry=10**6))]

    copy(broker, topic, target, p0=invent)
    report = verify(spark, compared(broker, (topic, target)), tmp_path / "run", ignore)
    assert problems(report) == {"0": {"missing": 2}}
    assert sum(topic["newer"] for topic in report.topics.values()) == 1
    absent = verify(spark, compared(broker, (topic, f"{topic}-absent")), tmp_path / "absent", ignore)
    assert sum(topic["missing"] for topic in absent.topics.values()) == 40
    with pytest.raises(VerifyError, match="absent: not found on east"):
        verify(spark, compared(broker, (f"{topic}-absent", topic)), tmp_path / "none", ignore)


def test_verify_when_broken_off_then_does_not_read_finished_partitions_again(
    spark, broker, client, topic, target, tmp_path, monkeypatch
):
    publish(client, topic, range(20), text="value {}", keys=10)
    copy(broker, topic, target)
    comparison = compared(broker, (topic, target))

    def stop(done, total):
        if done == 4:  # the source is read
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(spark, comparison, tmp_path / "run", stop)
    publish(client, topic, range(20), text="value {}", keys=10)
    with pytest.raises(VerifyError, match="broken off, of other clusters or topics"):
        verify(spark, compared(broker, (topic, topic)), tmp_path / "run", ignore)
    report = verify(spark, comparison, tmp_path / "run", ignore)
    assert report.is_same
    assert sum(topic["copies"] for topic in report.topics.values()) == sum(
        topic["originals"] for topic in report.topics.values()
    )


def test_verify_when_only_the_last_hour_is_asked_for_then_older_copies_are_not_judged(
    spark, broker, client, topic, target, tmp_path
):
    publish(client, topic, range(20), batching_enabled=False, text="value {}", keys=10)
    copy(broker, topic, target)
    hour = verify(spark, compared(broker, (topic, target), last_ms=3_600_000), tmp_path / "hour", ignore)
    assert hour.is_same
    assert sum(topic["originals"] for topic in hour.topics.values()) == 20
    moment = verify(spark, compared(broker, (topic, target), last_ms=1), tmp_path / "moment", ignore)
    assert sum(topic["originals"] for topic in moment.topics.values()) == 0
    assert moment.is_same


def test_verify_by_content_when_another_tool_mirrored_then_finds_each_problem(spark, broker, client, topic, tmp_path):
    mirror = f"{topic}-mirror"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(mirror), 2))
    publish(client, topic, range(100), text="value {}", keys=10)
    publish(client, mirror, range(100), batching_enabled=False, text="value {}", keys=10)
    same = verify(spark, compared(broker, (topic, mirror), match=CONTENT), tmp_path / "same", ignore)
    assert same.is_same
    assert same.topics[topic]["originals"] == same.topics[topic]["copies"] == 100
    publish(client, topic, [100, 110, 111], text="value {}", keys=10)
    publish(client, mirror, [110, 100, 7], text="value {}", keys=10)
    with client.create_producer(mirror) as producer:
        producer.send(b"altered", key="k1")
        producer.send(b"without key")
    found = verify(spark, compared(broker, (topic, mirror), match=CONTENT), tmp_path / "other", ignore)
    counts = {key: found.topics[topic][key] for key in Problem if found.topics[topic][key]}
    assert counts == {"reordered": 1, "different": 1, "duplicated": 1, "extra": 1}
    assert {(each["problem"], each["key"]) for each in found.examples} == {
        ("reordered", "k0"),
        ("different", "k1"),
        ("duplicated", "k7"),
        ("extra", None),
    }


def test_judge_when_a_key_has_many_messages_then_holds_a_part_of_them(spark):
    """Ten times as many as a window may hold: Spark writes them to disk, and Python gets none that are well."""
    count, held = 20_000, 2_000
    conf = {
        "spark.sql.windowExec.buffer.in.memory.threshold": held,
        "spark.sql.windowExec.buffer.spill.threshold": held,
    }

    def group(side, entry):
        identity = (
            "cast(cast(id AS string) AS binary) AS identity",
            "cast('c' AS binary) AS content",
            "cast(id AS string) AS place",
        )
        at = "0 AS partition", "1L AS ledger", f"{entry} AS entry", "-1 AS batch"
        named = "'t' AS topic", "cast('k' AS binary) AS key", f"{side} AS side"
        return spark.range(count).selectExpr(*named, *identity, "false AS overtaken", *at)

    rows = group(SOURCE, "id").unionByName(group(TARGET, f"(id + 1) % {count}"))  # the last copy comes first
    before = {key: spark.conf.get(key) for key in conf}
    try:
        for key, value in conf.items():
            spark.conf.set(key, value)
        spark.sparkContext.setJobGroup("many", "")
        found = judge(rows).groupBy("problem").count().collect()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        for key, value in before.items():
            spark.conf.set(key, value)
    assert [tuple(row) for row in found] == [("reordered", count - 1)]
    assert spilled_bytes(spark, "many") > 0


def spilled_bytes(spark, group):
    """What the stages of a group of jobs had on disk for want of memory."""
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [stage for job in jobs for stage in job.stageIds if tracker.getStageInfo(stage) is not None]
    return sum(store.lastStageAttempt(stage).diskBytesSpilled() for stage in stages)
