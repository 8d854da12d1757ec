"""``topics doctor`` against our broker: each state is found, explained, repaired, and not found again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.app import BrokerApp
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.storage.api import Change, Delete, Put
from interpulse.testing import InProcessBroker
from tests.support.cli_cluster import CliCluster

NAMESPACE = "public/doctored"
X = f"persistent://{NAMESPACE}/x"


class Patient:
    """A broker whose metadata can be spoilt behind its back."""

    def __init__(self, broker: InProcessBroker) -> None:
        self.cluster = CliCluster(broker.web_url, broker.service_url)
        self._broker = broker

    def count(self, name: str, partitions: int | None, *, deleted: bool = False) -> None:
        """Write partition metadata under a name, or take it away."""
        key = keys.partitioned_topic(TopicName.parse(name))
        metadata = PartitionedTopicMetadata(partitions or 0, deleted)
        self._commit(Delete(key) if partitions is None else Put(key, metadata.dump()))

    def record(self, name: str, *, present: bool = True) -> None:
        """Write a topic record, or take it away."""
        key = keys.topic_record(TopicName.parse(name))
        self._commit(Put(key, b'{"ledgers":[],"properties":{}}') if present else Delete(key))

    def _commit(self, change: Change) -> None:
        async def commit(app: BrokerApp) -> None:
            await app.lifecycle._store.commit([change])  # behind its back

        self._broker.call(commit)

    def doctor(self, arguments: str = NAMESPACE) -> tuple[int, Any]:
        """Exit code and JSON of the doctor."""
        code, output, error = self.cluster.attempt(f"topics doctor {arguments} -o json")
        assert output, error
        return code, json.loads(output)

    def kinds(self, arguments: str = NAMESPACE) -> list[str]:
        """What is found."""
        code, found = self.doctor(arguments)
        assert code == (1 if found["findings"] else 0)
        return [each["kind"] for each in found["findings"]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with InProcessBroker(Path(tmp_path_factory.mktemp("doctored"))) as started:
        yield started


@pytest.fixture
def patient(broker: InProcessBroker) -> Iterator[Patient]:
    """Every test has the namespace to itself."""
    found = Patient(broker)
    found.cluster.run("brokers update-dynamic-config --config forceDeleteNamespaceAllowed --value true")
    found.cluster.run(f"namespaces create {NAMESPACE}")
    yield found
    found.cluster.run(f"namespaces delete {NAMESPACE} -f")


def published(patient: Patient, partitions: int) -> None:
    """A partitioned topic with two messages in every partition, and a subscription that waits for them."""
    patient.cluster.run(f"topics create-partitioned-topic {X} -p {partitions}")
    patient.cluster.run(f"topics create-subscription {X} -s waiting -m earliest")
    for index in range(partitions):
        patient.cluster.produce(f"{X}-partition-{index}", "-m", "a,b")
        patient.cluster.run(f"topics unload {X}-partition-{index}")


def test_healthy_namespace_when_examined_then_nothing_is_found(patient: Patient) -> None:
    published(patient, 2)
    patient.cluster.run(f"topics create {NAMESPACE}/plain")
    patient.cluster.run(f"topics create {NAMESPACE}/x-partition-0-DLQ")
    code, output, _ = patient.cluster.attempt(f"topics doctor {NAMESPACE}")
    assert (code, output) == (0, "5 topics in 1 namespace examined, nothing found\n")


def test_lost_metadata_when_repaired_then_messages_can_be_read_again(patient: Patient) -> None:
    published(patient, 2)
    patient.count(X, None)
    code, output, _ = patient.cluster.attempt(f"topics doctor {X}-partition-1")
    lines = output.splitlines()
    assert code == 1
    assert lines[0].startswith(
        f"lost-metadata: partitions 0 to 1 of {X} are stored, but its partition metadata is lost"
    )
    repair = f"interpulse-admin --admin-url {patient.cluster.web_url} topics create-partitioned-topic {X} -p 2"
    assert lines[1] == f"    repair: {repair}"
    assert lines[-1] == "2 topics in 1 namespace examined, 1 disagreement found, 1 of them repaired by --repair"
    code, output, _ = patient.cluster.attempt(f"topics doctor {NAMESPACE} --repair")
    assert (code, output.splitlines()) == (0, [f"done: {repair}", "2 topics in 1 namespace examined, nothing is left"])
    assert sorted(patient.cluster.consume(X, "-s", "waiting", "-n", "4")) == [
        f"[null], properties:[], content:{text}" for text in "aabb"
    ]
    assert patient.kinds() == []


def test_lost_metadata_when_the_printed_line_is_run_then_is_repaired_as_well(patient: Patient) -> None:
    patient.record(f"{X}-partition-3")
    (finding,) = patient.doctor()[1]["findings"]
    (line,) = finding["repairs"]
    patient.cluster.run(line.partition(f"{patient.cluster.web_url} ")[2])
    assert patient.kinds() == []
    assert patient.cluster.json(f"topics get-partitioned-topic-metadata {X}")["partitions"] == 4


def test_orphan_partition_when_repaired_then_the_count_covers_it(patient: Patient) -> None:
    published(patient, 4)
    patient.count(X, 2)
    code, found = patient.doctor()
    (finding,) = found["findings"]
    assert (code, finding["kind"]) == (1, "orphan-partitions")
    assert [each["option"] for each in finding["deletions"]] == [f"--delete {X}-partition-{index}" for index in (2, 3)]
    (lost,) = finding["deletions"][1]["lost"]
    assert (lost["topic"], list(lost["backlogs"]), lost["exact"]) == (f"{X}-partition-3", ["waiting"], False)
    assert patient.doctor("--repair")[0] == 0
    assert len(patient.cluster.consume(X, "-s", "waiting", "-n", "8")) == 8


def test_orphan_partition_when_its_deletion_is_chosen_then_only_that_is_lost(patient: Patient) -> None:
    published(patient, 3)
    patient.count(X, 1)
    code, found = patient.doctor(f"{NAMESPACE} --repair --delete {X}-partition-2")
    assert (code, [each["done"] for each in found["calls"]]) == (0, [True, True])
    assert patient.cluster.run(f"topics list {NAMESPACE}") == f"{X}-partition-0\n{X}-partition-1\n"
    assert len(patient.cluster.consume(X, "-s", "waiting", "-n", "4")) == 4


def test_both_kinds_when_only_repair_is_said_then_nothing_is_chosen(patient: Patient) -> None:
    published(patient, 2)
    patient.record(X)
    code, found = patient.doctor(f"{NAMESPACE} --repair")
    (finding,) = found["findings"]
    assert (code, found["calls"], finding["kind"], finding["repairs"]) == (1, [], "both-kinds", [])
    plain, partitioned = finding["deletions"]
    assert (plain["option"], plain["outcome"]) == (f"--delete {X}", "the partitioned topic stays")
    assert (partitioned["option"], partitioned["outcome"]) == (f"--delete-partitioned {X}", "the plain topic stays")
    assert [(each["entries"], each["backlogs"], each["exact"]) for each in partitioned["lost"]] == [
        (1, {"waiting": 1}, True)
    ] * 2
    text = patient.cluster.attempt(f"topics doctor {NAMESPACE}")[1]
    assert f"loses {X}-partition-0: 1 entry, " in text
    assert "waiting has not consumed 1" in text


@pytest.mark.parametrize(
    ("option", "partitions", "left"),
    [
        ("--delete", 2, [f"{X}-partition-0", f"{X}-partition-1"]),
        ("--delete-partitioned", 0, [X]),
    ],
)
def test_both_kinds_when_one_is_chosen_then_the_other_stays(
    patient: Patient, option: str, partitions: int, left: list[str]
) -> None:
    published(patient, 2)
    patient.record(X)
    assert patient.doctor(f"{NAMESPACE} --repair {option} {X}")[0] == 0
    assert patient.cluster.run(f"topics list {NAMESPACE}").split() == left
    assert patient.cluster.json(f"topics get-partitioned-topic-metadata {X}")["partitions"] == partitions
    patient.cluster.produce(X, "-m", "again")


def test_missing_partition_when_repaired_then_is_there(patient: Patient) -> None:
    published(patient, 3)
    patient.cluster.run(f"topics delete {X}-partition-1")
    assert patient.kinds() == ["missing-partitions"]
    assert patient.kinds(f"{NAMESPACE} --ignore missing-partitions") == []
    assert patient.doctor(f"{NAMESPACE} --repair")[0] == 0
    assert len(patient.cluster.run(f"topics list {NAMESPACE}").split()) == 3


def test_unfinished_expansion_when_repaired_then_new_partitions_have_the_subscriptions(patient: Patient) -> None:
    published(patient, 2)
    patient.count(X, 4)
    assert patient.kinds() == ["unfinished-expansion"]
    assert patient.doctor(f"{NAMESPACE} --repair")[0] == 0
    assert patient.cluster.run(f"topics subscriptions {X}-partition-3") == "waiting\n"


def test_unfinished_deletion_when_repaired_then_the_topic_is_gone(patient: Patient) -> None:
    published(patient, 3)
    patient.cluster.run(f"topics delete {X}-partition-0")
    patient.count(X, 3, deleted=True)
    assert patient.kinds(X) == ["unfinished-deletion"]
    assert patient.doctor(f"{X} --repair")[0] == 0
    assert patient.cluster.run(f"topics list {NAMESPACE}") == ""
    assert patient.cluster.run(f"topics list-partitioned-topics {NAMESPACE}") == ""


def test_unfinished_deletion_when_an_orphan_would_be_left_then_it_has_to_be_named(patient: Patient) -> None:
    patient.count(X, 1, deleted=True)
    patient.record(f"{X}-partition-5")
    code, found = patient.doctor(f"{NAMESPACE} --repair")
    assert (code, found["calls"]) == (1, [])
    code, found = patient.doctor(f"{NAMESPACE} --repair --delete {X}-partition-5")
    assert (code, len(found["calls"]), found["findings"]) == (0, 2, [])


def test_plain_topic_when_it_blocks_the_repair_then_its_deletion_frees_it(patient: Patient) -> None:
    patient.record(X)
    patient.record(f"{X}-partition-0")
    assert patient.doctor(f"{NAMESPACE} --repair")[0] == 1
    code, found = patient.doctor(f"{NAMESPACE} --repair --delete {X}")
    assert (code, [each["done"] for each in found["calls"]]) == (0, [True, True])
    assert patient.cluster.json(f"topics get-partitioned-topic-metadata {X}")["partitions"] == 1


def test_repair_when_refused_then_says_why_and_finds_it_still(patient: Patient) -> None:
    patient.record(f"{X}-partition-9")
    patient.cluster.run("brokers update-dynamic-config --config maxNumPartitionsPerPartitionedTopic --value 5")
    code, output, _ = patient.cluster.attempt(f"topics doctor {NAMESPACE} --repair")
    patient.cluster.run("brokers delete-dynamic-config --config maxNumPartitionsPerPartitionedTopic")
    lines = output.splitlines()
    assert (code, lines[0].startswith("failed: interpulse-admin")) == (1, True)
    assert "HTTP 406" in lines[1]
    assert lines[2].startswith("lost-metadata: ")
    assert lines[-1] == "1 topic in 1 namespace examined, 1 disagreement left"


def test_non_persistent_metadata_when_its_deletion_broke_off_then_is_found_in_its_domain(patient: Patient) -> None:
    name = f"non-persistent://{NAMESPACE}/x"
    patient.count(name, 2, deleted=True)
    assert patient.kinds(f"{NAMESPACE} --domain persistent") == []
    assert patient.kinds(f"{NAMESPACE} --domain non-persistent") == ["unfinished-deletion"]
    assert patient.doctor(f"{name} --repair")[0] == 0


def test_everything_when_no_name_is_given_then_is_examined(patient: Patient) -> None:
    patient.record(f"{X}-partition-0")
    assert patient.kinds("") == ["lost-metadata"]
    code, output, _ = patient.cluster.attempt("topics doctor")
    assert code == 1
    assert "namespaces examined, 1 disagreement found" in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("public/nowhere", "Namespace does not exist"),
        ("public/doctored/nothing", "There is no topic persistent://public/doctored/nothing"),
        ("a/b/c/d", "Invalid topic name"),
        (f"{NAMESPACE} --delete {X}", "are part of a --repair"),
        (f"{NAMESPACE} --repair --delete {X}", f"Deleting {X} repairs no finding; nothing was changed"),
    ],
)
def test_doctor_when_it_cannot_look_then_says_so(patient: Patient, arguments: str, said: str) -> None:
    code, output, error = patient.cluster.attempt(f"topics doctor {arguments}")
    assert (code, output) == (2, "")
    assert said in error


def test_doctor_when_the_broker_does_not_answer_then_could_not_look() -> None:
    code, _, error = CliCluster("http://127.0.0.1:1", "pulsar://127.0.0.1:1").attempt("topics doctor public/default")
    assert (code, "Cannot reach" in error) == (2, True)
