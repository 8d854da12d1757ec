"""What the launcher of a real Pulsar promises to the tests and benchmarks that use it."""

import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pulsar
import pytest

from tests.interop.conftest import JavaCheck, RealPulsarFactory
from tests.interop.real_pulsar import Address, DidNotStart, JavaCheckFailed, RealPulsar, address_from_environment

pytestmark = [pytest.mark.interop, pytest.mark.slow]

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def publish_values(service_url: str, topic: str, values: list[bytes]) -> None:
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        producer = client.create_producer(topic)
        for value in values:
            producer.send(value)
    finally:
        client.close()


def read(service_url: str, topic: str, count: int) -> list[bytes]:
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        return [reader.read_next(60_000).data() for _ in range(count)]
    finally:
        client.close()


def test_shared_cluster_when_asked_then_serves_both_front_ends(real_pulsar: Address) -> None:
    topic = f"public/default/{uuid.uuid4()}"
    publish_values(real_pulsar.service_url, topic, [b"a", b"b"])
    assert read(real_pulsar.service_url, topic, 2) == [b"a", b"b"]
    with urllib.request.urlopen(f"{real_pulsar.web_url}/admin/v2/persistent/{topic}/stats", timeout=60) as answer:
        assert answer.status == 200


def test_java_clients_when_run_on_the_class_path_then_print_what_they_saw(
    real_pulsar: Address, java_check: JavaCheck
) -> None:
    printed = java_check("RoundTrip.java", *real_pulsar, f"public/default/{uuid.uuid4()}")
    assert printed.splitlines() == ["2", *(f"message {i}" for i in range(5))]


def test_java_check_when_the_program_fails_then_shows_its_output(java_check: JavaCheck) -> None:
    with pytest.raises(JavaCheckFailed, match="ArrayIndexOutOfBounds"):
        java_check("RoundTrip.java")


def test_cluster_when_killed_altered_and_restarted_then_keeps_its_address_and_its_data(
    start_real_pulsar: RealPulsarFactory,
) -> None:
    cluster = start_real_pulsar("kept")
    before = cluster.address
    publish_values(cluster.service_url, "public/default/kept", [b"1", b"2", b"3"])
    cluster.kill()
    assert not cluster.running

    orphan = "/admin/partitioned-topics/public/default/persistent/orphan"
    partitions = f"{cluster.web_url}/admin/v2/persistent/public/default/orphan/partitions"
    assert cluster.metadata_children("/admin/policies") == ["public", "pulsar"]
    assert cluster.get_metadata(orphan) is None
    cluster.put_metadata(orphan, b'{"partitions":3}')
    assert cluster.get_metadata(orphan) == b'{"partitions":3}'
    cluster.start()
    assert cluster.address == before
    assert read(cluster.service_url, "public/default/kept", 3) == [b"1", b"2", b"3"]
    with urllib.request.urlopen(partitions, timeout=60) as answer:
        assert b'"partitions":3' in answer.read()

    cluster.stop()
    cluster.delete_metadata(orphan)
    cluster.restart(settings={"allowAutoTopicCreation": "false"})
    assert read(cluster.service_url, "public/default/kept", 3) == [b"1", b"2", b"3"]
    with pytest.raises(pulsar.TopicNotFound):
        publish_values(cluster.service_url, "public/default/new", [b"1"])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(partitions, timeout=60)


def test_metadata_of_many_keys_when_set_at_once_then_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    cluster = RealPulsar(tmp_path)
    many = {"/set/at/once": b"\x00\xff", "/set/at": b"", "/other": b"x"}
    cluster.put_all_metadata(many)
    assert cluster.metadata_below("/set") == {key: value for key, value in many.items() if key != "/other"}


def test_start_when_the_process_ends_early_then_names_its_directory(tmp_path: Path) -> None:
    cluster = RealPulsar(tmp_path / "broken", settings={"managedLedgerDefaultEnsembleSize": "many"})
    with pytest.raises(DidNotStart, match="broken"):
        cluster.start()
    assert not cluster.running


def test_address_when_the_environment_names_only_one_url_then_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERPULSE_REAL_PULSAR_SERVICE_URL", "pulsar://127.0.0.1:1")
    monkeypatch.delenv("INTERPULSE_REAL_PULSAR_WEB_URL", raising=False)
    with pytest.raises(ValueError, match="both, or neither"):
        address_from_environment()
    monkeypatch.setenv("INTERPULSE_REAL_PULSAR_WEB_URL", "http://127.0.0.1:2")
    assert address_from_environment() == Address("pulsar://127.0.0.1:1", "http://127.0.0.1:2")
