"""Connections to brokers inside TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.client.tls import TlsOptions
from interpulse.proxy.brokers import Brokers, endpoint_of
from interpulse.proxy.dialer import Dialer, TargetUnreachable
from interpulse.proxy.targets import TargetRules
from tests.support.certificates import Authority
from tests.support.scripted_broker import ScriptedBroker


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
