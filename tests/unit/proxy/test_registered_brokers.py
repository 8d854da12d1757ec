"""Brokers that register in ZooKeeper, followed by the proxy."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.proxy.brokers import RegisteredBroker
from interpulse.proxy.registered_brokers import RegisteredBrokers, registered_broker
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.support.waiting import eventually


def report(port: int) -> bytes:
    return json.dumps(
        {
            "webServiceUrl": f"http://b:{port + 1}",
            "pulsarServiceUrl": f"pulsar://b:{port}",
            "pulsarServiceUrlTls": f"pulsar+ssl://b:{port + 2}",
            "loadReportType": "LocalBrokerData",
        }
    ).encode()


def test_report_when_read_then_has_the_addresses_of_the_broker() -> None:
    assert registered_broker(report(1), tls=False) == RegisteredBroker(BrokerAddress("b", 1), "http://b:2")
    assert registered_broker(report(1), tls=True) == RegisteredBroker(BrokerAddress("b", 3, tls=True), "")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"pulsarServiceUrl":"b:1"}', b"\xff"])
def test_report_when_it_cannot_be_used_then_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # whatever it says goes to the log
        registered_broker(content, tls=False)


async def test_brokers_when_they_come_and_go_then_the_proxy_follows() -> None:
    told: list[Mapping[str, RegisteredBroker]] = []
    async with scripted_zookeeper() as zookeeper:
        where = await zookeeper.listen()
        brokers = await ZooKeeperClient.connect(where)
        followed = await RegisteredBrokers.follow(f"zk:{where}", told.append, tls=False, session_timeout_ms=30_000)
        assert not told
        await brokers.create_parents("/loadbalance/brokers/b:2")
        await brokers.create("/loadbalance/brokers/b:2", report(1), ephemeral=True)
        await eventually(lambda: told and set(told[-1]) == {"b:2"})
        await brokers.create("/loadbalance/brokers/odd", b"{", ephemeral=True)
        await brokers.create("/loadbalance/brokers/b:12", report(11), ephemeral=True)
        await eventually(lambda: set(told[-1]) == {"b:2", "b:12"})
        zookeeper.cut()
        await brokers.exists("/loadbalance")  # a question waits until its client is connected again
        await brokers.delete("/loadbalance/brokers/b:2")
        await eventually(lambda: set(told[-1]) == {"b:12"})
        assert told[-1]["b:12"].service_url == BrokerAddress("b", 11)
        await brokers.close()
        await eventually(lambda: not told[-1])
        await followed.stop()


async def test_brokers_when_one_report_nests_too_deeply_then_only_that_broker_is_left_out() -> None:
    told: list[Mapping[str, RegisteredBroker]] = []
    async with scripted_zookeeper() as zookeeper:
        where = await zookeeper.listen()
        brokers = await ZooKeeperClient.connect(where)
        await brokers.create_parents("/loadbalance/brokers/b:2")
        await brokers.create("/loadbalance/brokers/a:2", b"[" * 100_000, ephemeral=True)
        await brokers.create("/loadbalance/brokers/b:2", report(1), ephemeral=True)
        followed = await RegisteredBrokers.follow(f"zk:{where}", told.append, tls=False, session_timeout_ms=30_000)
        assert set(told[-1]) == {"b:2"}
        await brokers.close()
        await followed.stop()


async def test_brokers_when_a_report_fails_then_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Mapping[str, RegisteredBroker]] = []

    def fail_once(brokers: Mapping[str, RegisteredBroker]) -> None:
        told.append(brokers)
        if len(told) == 1:
            raise RuntimeError("a bug of the proxy")

    async with scripted_zookeeper() as zookeeper:
        where = await zookeeper.listen()
        brokers = await ZooKeeperClient.connect(where)
        followed = await RegisteredBrokers.follow(f"zk:{where}", fail_once, tls=False, session_timeout_ms=30_000)
        await brokers.create_parents("/loadbalance/brokers/b:2")
        await brokers.create("/loadbalance/brokers/b:2", report(1), ephemeral=True)
        await eventually(lambda: told)
        await brokers.create("/loadbalance/brokers/b:12", report(11), ephemeral=True)
        await eventually(lambda: set(told[-1]) == {"b:2", "b:12"})
        await brokers.close()
        await followed.stop()
    assert "a bug of the proxy" in caplog.text
