"""Locks and load reports against what brokers of Apache Pulsar 5.0.0-M1 wrote (cluster 11.1, 11.5)."""

from __future__ import annotations

import json

import pytest

from interpulse.model.brokers import (
    BrokerAddresses,
    BrokerLoad,
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
    written = json.loads(real.dump(BrokerLoad(), started_ms=1795420970792, now_ms=1795420970792, cores=2))
    expected = json.loads(REAL_REPORT)
    assert list(written) == list(expected)
    for measured in ("memory", "directMemory", "maxResourceUsage"):
        written.pop(measured), expected.pop(measured)
    assert written == expected


def test_report_when_topics_are_served_then_are_counted() -> None:
    report = LoadReport(BrokerAddresses("h:3", TLS), "5.0.0+interpulse-1", "Modular")
    body = json.loads(report.dump(BrokerLoad(7, 2, 3, ["t/ns/0x0_0x1"]), started_ms=1, now_ms=2, cores=1))
    assert [body[key] for key in ("numTopics", "numProducers", "numConsumers", "numBundles")] == [7, 2, 3, 1]
    assert body["bundles"] == ["t/ns/0x0_0x1"]
    assert body["pulsarServiceUrlTls"] == "pulsar+ssl://h:2"
    assert LoadReport.load("h:3", report.dump(BrokerLoad(), started_ms=1, now_ms=2, cores=1)).is_ours


def test_leader_when_a_real_broker_leads_then_is_named() -> None:
    assert leader_in(b'{"brokerId":"127.0.0.1:8081","serviceUrl":"http://127.0.0.1:8081"}') == "127.0.0.1:8081"
