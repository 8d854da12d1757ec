"""Connections to brokers inside TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.client.tls import TlsOptions
from interpulse.proxy.brokers import Brokers, endpoint_of
from interpulse.proxy.dialer import Dialer, TargetRules, TargetUnreachable
from interpulse.serving.settings import ConfigError
from tests.support.certificates import Authority
from tests.support.scripted_broker import ScriptedBroker


@pytest.mark.parametrize(
    ("hosts", "ports", "place", "allowed"),
    [
        ("*", "*", ("anything", 1), True),
        ("broker-*.lan", "*", ("broker-1.lan", 6650), True),
        ("broker-*.lan", "*", ("BROKER-1.lan", 6650), True),
        ("broker-*.lan", "*", ("broker-1.lan.evil.example", 6650), False),
        ("broker-*.lan", "*", ("broker-1xlan", 6650), False),
        ("a, b", "*", ("b", 6650), True),
        ("a, b", "*", ("c", 6650), False),
        ("", "*", ("a", 6650), False),
        ("*", "6650,6651", ("a", 6651), True),
        ("*", "6650,6651", ("a", 6652), False),
        ("*", "6650-6660", ("a", 6660), True),
        ("*", "6650-6660", ("a", 6661), False),
        ("", "*", ("10.0.0.1", 6650), False),
    ],
)
def test_host_and_port_when_checked_by_the_rules_then_allowed_or_not(
    hosts: str, ports: str, place: tuple[str, int], allowed: bool
) -> None:
    assert (TargetRules.read(hosts, "*", ports).refusal(*place) is None) is allowed


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        ("*", "1.2.3.4", True),
        ("10.0.0.0/8", "10.9.8.7", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("10.0.0.0/8, ::1", "::1", True),
        ("::1", "127.0.0.1", False),
    ],
)
def test_address_when_checked_by_the_rules_then_allowed_or_not(networks: str, address: str, allowed: bool) -> None:
    assert TargetRules.read("*", networks, "*").allows_ip(address) is allowed


def test_rules_when_they_cannot_be_read_then_every_one_is_named() -> None:
    with pytest.raises(ConfigError) as refused:
        TargetRules.read("*", "10.0.0.0/33", "0,6650-,9-1,70000,x")
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        "brokerProxyAllowedIPAddresses=10.0.0.0/33",
        "brokerProxyAllowedTargetPorts=0",
        "brokerProxyAllowedTargetPorts=6650-",
        "brokerProxyAllowedTargetPorts=9-1",
        "brokerProxyAllowedTargetPorts=70000",
        "brokerProxyAllowedTargetPorts=x",
    ]


async def test_certificates_when_their_files_stay_the_same_then_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, stranger = Authority(tmp_path / "authority"), Authority(tmp_path / "stranger")
    own = authority.issue("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    read: list[TlsOptions] = []
    make = TlsOptions.context

    def noted(options: TlsOptions) -> ssl.SSLContext:
        read.append(options)
        return make(options)

    monkeypatch.setattr(TlsOptions, "context", noted)
    async with ScriptedBroker(tls=context) as broker:
        address = BrokerAddress.parse(broker.url)
        tls = TlsOptions(trust_certs_path=str(authority.file))
        dialer = Dialer(Brokers([address], []), TargetRules(), timeout_seconds=60, tls=tls)
        for _ in range(3):
            await dialer.connect(endpoint_of(address), asyncio.Protocol())
        assert len(read) == 1
        stranger.file.replace(authority.file)
        with pytest.raises(TargetUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            await dialer.connect(endpoint_of(address), asyncio.Protocol())
        assert len(read) == 2
