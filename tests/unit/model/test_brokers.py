"""Locks and load reports against what brokers of Apache Pulsar 5.0.0-M1 wrote.

Source: docs/reference/cluster-protocol.md#locks, docs/reference/cluster-protocol.md#load-report.
"""

from __future__ import annotations

import json

import pytest

from interpulse.model.brokers import (
    BrokerAddresses,
    BrokerLoad,
    BundleLoad,
    BundleLock,
    ListenerAddresses,
    LoadReport,
    leader_in,
)

REAL_LOCK = (
    b'{"brokerId":"127.0.0.1:8081","nativeUrl":"pulsar://127.0.0.1:6651","httpUrl":"http://127.0.0.1:8081",'
    b'"disabled":false,"advertisedListeners":{"internal":{"brokerServiceUrl":"pulsar://127.0.0.1:6651",'
    b'"brokerHttpUrl":"http://127.0.0.1:8081"}}}'
)
REAL_REPORT = (
    b'{"brokerId":"127.0.0.1:8082","webServiceUrl":"http://127.0.0.1:8082","pulsarServiceUrl":"pulsar://127.0.0.1:6652",'
    b'"persistentTopicsEnabled":true,"nonPersistentTopicsEnabled":true,"cpu":{"usage":0.0,"limit":200.0},'
    b'"memory":{"usage":46.7,"limit":494.9},"directMemory":{"usage":4.0,"limit":512.0},'
    b'"bandwidthIn":{"usage":0.0,"limit":-1000.0},"bandwidthOut":{"usage":0.0,"limit":-1000.0},"msgThroughputIn":0.0,'
    b'"msgThroughputOut":0.0,"msgRateIn":0.0,"msgRateOut":0.0,"lastUpdate":1795420970792,"lastStats":{},"numTopics":0,'
    b'"numBundles":0,"numConsumers":0,"numProducers":0,"bundles":[],"lastBundleGains":[],"lastBundleLosses":[],'
    b'"brokerVersionString":"5.0.0-M1","protocols":{},"advertisedListeners":{"internal":{"brokerServiceUrl":'
    b'"pulsar://127.0.0.1:6652","brokerHttpUrl":"http://127.0.0.1:8082"}},"loadManagerClassName":'
    b'"org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl","startTimestamp":1795420970792,'
    b'"maxResourceUsage":0.0078125,"loadReportType":"LocalBrokerData"}'
)
TLS = ListenerAddresses("pulsar://h:1", "pulsar+ssl://h:2", "http://h:3", "https://h:4")


def test_lock_when_loaded_and_written_then_is_the_same_bytes() -> None:
    lock = BundleLock.load(REAL_LOCK)
    assert lock.broker.broker_id == "127.0.0.1:8081"
    assert lock.broker.addresses == lock.broker.listeners["internal"]
    assert not lock.disabled
    assert lock.dump() == REAL_LOCK


def test_lock_when_addresses_of_tls_are_offered_then_are_written_too() -> None:
    lock = BundleLock(BrokerAddresses("h:3", TLS, {"x": TLS}), disabled=True)
    assert BundleLock.load(lock.dump()) == lock
    assert json.loads(lock.dump())["advertisedListeners"]["x"]["brokerHttpsUrl"] == "https://h:4"


def test_lock_when_an_older_broker_wrote_no_id_then_it_is_that_of_its_web_service() -> None:
    assert BundleLock.load(b'{"httpUrl":"http://old:8080"}').broker.broker_id == "old:8080"


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"7", b"\xff"])
def test_lock_when_not_an_object_then_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        BundleLock.load(value)
    assert leader_in(value) is None


def test_report_when_written_then_has_the_fields_of_a_real_one_in_order() -> None:
    real = LoadReport.load("127.0.0.1:8082", REAL_REPORT)
    assert not real.is_ours
    written = json.loads(real.dump(BrokerLoad(cores=2), started_ms=1795420970792, now_ms=1795420970792))
    expected = json.loads(REAL_REPORT)
    assert list(written) == list(expected)
    for measured in ("memory", "directMemory", "maxResourceUsage"):
        written.pop(measured), expected.pop(measured)
    assert written == expected


def test_report_when_topics_are_served_then_are_counted() -> None:
    report = LoadReport(BrokerAddresses("h:3", TLS), "5.0.0+interpulse-1", "Modular")
    bundles = {"t/ns/0x0_0x1": BundleLoad(4, 2, 1, 0.5, 50.0, 1.0, 100.0), "t/ns/0x1_0x2": BundleLoad(3, 0, 2, 1.0)}
    load = BrokerLoad(bundles, cpu_percent=50, cores=2, memory_mib=300, memory_limit_mib=1000)
    body = json.loads(report.dump(load, started_ms=1, now_ms=2))
    assert [body[key] for key in ("numTopics", "numProducers", "numConsumers", "numBundles")] == [7, 2, 3, 2]
    assert [body[key] for key in ("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut")] == [
        1.5,
        50,
        1,
        100,
    ]
    assert body["bundles"] == list(body["lastStats"]) == list(bundles)
    assert body["lastStats"]["t/ns/0x0_0x1"] == {
        "msgRateIn": 0.5,
        "msgThroughputIn": 50.0,
        "msgRateOut": 1.0,
        "msgThroughputOut": 100.0,
        "consumerCount": 1,
        "producerCount": 2,
        "topics": 4,
        "cacheSize": 0,
    }
    assert (body["cpu"], body["memory"]) == ({"usage": 50, "limit": 200}, {"usage": 300, "limit": 1000})
    assert body["maxResourceUsage"] == 0.3
    assert body["pulsarServiceUrlTls"] == "pulsar+ssl://h:2"
    assert LoadReport.load("h:3", report.dump(BrokerLoad(), started_ms=1, now_ms=2)).is_ours


def test_leader_when_a_real_broker_leads_then_is_named() -> None:
    assert leader_in(b'{"brokerId":"127.0.0.1:8081","serviceUrl":"http://127.0.0.1:8081"}') == "127.0.0.1:8081"
