"""``topics doctor`` against a real Pulsar: every state is made there, found, repaired with its own calls, and gone."""

from __future__ import annotations

import json
from typing import Any

import pulsar
import pytest

from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import RealPulsar
from tests.support.cli_cluster import CliCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

NAMESPACE = "public/default"
METADATA = f"/admin/partitioned-topics/{NAMESPACE}/persistent"
RECORDS = f"/managed-ledgers/{NAMESPACE}/persistent"
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)

STATES = {
    "both": "both-kinds",
    "deleted": "unfinished-deletion",
    "expanded": "unfinished-expansion",
    "lost": "lost-metadata",
    "missing": "missing-partitions",
    "orphan": "orphan-partitions",
}


def name(local_name: str) -> str:
    return f"persistent://{NAMESPACE}/{local_name}"


def healthy(cluster: CliCluster) -> None:
    """Topics as they are before anything happens to them: those with four partitions hold a message in each."""
    for local_name in ("lost", "orphan", "both", "deleted", "missing"):
        cluster.run(f"topics create-partitioned-topic {name(local_name)} -p 4")
    cluster.run(f"topics create-partitioned-topic {name('expanded')} -p 2")
    for local_name in ("lost", "orphan", "expanded"):
        cluster.run(f"topics create-subscription {name(local_name)} -s waiting -m earliest")
    for index in range(4):
        cluster.produce(name(f"lost-partition-{index}"), "-m", f"lost {index}")
        cluster.produce(name(f"orphan-partition-{index}"), "-m", f"orphan {index}")


def spoil(pulsar_cluster: RealPulsar) -> None:
    """What lost metadata, and operations that were broken off, leave behind."""
    pulsar_cluster.put_all_metadata(
        {
            f"{METADATA}/orphan": b'{"partitions":2,"deleted":false}',
            f"{METADATA}/expanded": b'{"partitions":4,"deleted":false}',
            f"{METADATA}/deleted": b'{"partitions":4,"deleted":true}',
            f"{RECORDS}/both": b"",
            f"{RECORDS}/lost-partition-0-DLQ": b"",
            f"{RECORDS}/orphan-partition-01": b"",
        }
    )
    pulsar_cluster.delete_metadata(f"{METADATA}/lost")
    pulsar_cluster.delete_metadata(f"{RECORDS}/missing-partition-1")


def doctor(cluster: CliCluster, arguments: str = "") -> tuple[int, Any]:
    code, output, error = cluster.attempt(f"topics doctor {arguments} -o json")
    assert output, error
    return code, json.loads(output)


def found(examined: dict[str, Any]) -> dict[str, str]:
    return {each["topic"].rpartition("/")[2]: each["kind"] for each in examined["findings"]}


def received(service_url: str, topic: str, count: int) -> list[str]:
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        consumer = client.subscribe(topic, "waiting")
        return sorted(consumer.receive(60_000).data().decode() for _ in range(count))
    finally:
        client.close()


def produced(service_url: str, topic: str) -> None:
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        client.create_producer(topic).send(b"again")
    finally:
        client.close()


@pytest.mark.timeout(1200)  # two starts and several Java programs, on a machine that may be busy
def test_doctor_when_a_real_cluster_is_spoilt_then_finds_and_repairs_all_of_it(
    start_real_pulsar: RealPulsarFactory,
) -> None:
    real = start_real_pulsar("doctored")
    cluster = CliCluster(real.web_url, real.service_url)
    healthy(cluster)
    assert doctor(cluster)[1]["findings"] == []
    real.kill()
    spoil(real)
    real.start()
    code, examined = doctor(cluster)
    assert (code, found(examined)) == (1, STATES)
    (orphan,) = [each for each in examined["findings"] if each["topic"] == name("orphan")]
    assert [list(each["lost"][0]["backlogs"]) for each in orphan["deletions"]] == [["waiting"], ["waiting"]]
    assert doctor(cluster, name("lost-partition-2"))[1]["findings"][0]["kind"] == "lost-metadata"

    code, treated = doctor(cluster, f"{NAMESPACE} --repair")
    assert [each["error"] for each in treated["calls"]] == [None] * 5
    assert (code, found(treated)) == (1, {"both": "both-kinds"})
    code, refused = doctor(cluster, f"{NAMESPACE} --repair --delete {name('both')}")
    assert (code, "please call delete-partitioned-topic" in refused["calls"][0]["error"]) == (1, True)
    code, treated = doctor(cluster, f"{NAMESPACE} --repair --delete-partitioned {name('both')}")
    assert (code, treated["findings"]) == (0, [])

    code, examined = doctor(cluster)
    assert (code, examined["findings"]) == (0, [])
    assert cluster.run(f"topics subscriptions {name('expanded-partition-3')}") == "waiting\n"
    assert received(real.service_url, name("lost"), 4) == [f"lost {index}" for index in range(4)]
    assert received(real.service_url, name("orphan"), 4) == [f"orphan {index}" for index in range(4)]
    for local_name in STATES:
        produced(real.service_url, name(local_name))
