"""The addresses that a broker takes, and what clients are told of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from interpulse.broker.config.config_sources import load_config
from interpulse.broker.services import Services
from interpulse.serving.listening import CannotListen
from interpulse.serving.tls import UnusableTls
from tests.support.certificates import Authority

PORTS = {"pulsar": "brokerServicePort", "pulsar+ssl": "brokerServicePortTls", "http": "webServicePort"} | {
    "https": "webServicePortTls"
}


@pytest.mark.parametrize(
    "schemes",
    [["pulsar", "http"], ["pulsar+ssl", "https"], ["pulsar", "https"], ["pulsar", "pulsar+ssl", "http", "https"]],
)
async def test_services_when_taken_then_each_has_its_address_and_the_others_none(
    tmp_path: Path, schemes: list[str]
) -> None:
    own = Authority(tmp_path).issue("broker")
    settings = [f"{key}={'0' if scheme in schemes else ''}" for scheme, key in PORTS.items()]
    if {"https", "pulsar+ssl"} & set(schemes):
        settings += [f"tlsCertificateFilePath={own.certificate}", f"tlsKeyFilePath={own.key}"]
    async with AsyncExitStack() as opened:
        services = Services.take(load_config(settings=settings).config, opened)
        told = services.addresses
        urls = [told.service_url, told.service_url_tls, told.web_url, told.web_url_tls]
        assert [url.partition("://")[0] for url in urls if url] == schemes
        assert [urls[index] != "" for index, scheme in enumerate(PORTS)] == [scheme in schemes for scheme in PORTS]
        bound = [taken.bound.getsockname()[1] for taken in (*services.binary, *services.web)]
        assert [int(url.rpartition(":")[2]) for url in urls if url] == bound
        assert (services.tls is not None) == any(taken.tls for taken in (*services.binary, *services.web))


async def test_services_when_one_cannot_be_had_then_is_named(tmp_path: Path) -> None:
    own = Authority(tmp_path).issue("broker")
    files = [f"tlsCertificateFilePath={own.certificate}", f"tlsKeyFilePath={own.key}"]
    async with AsyncExitStack() as opened:
        other = Services.take(load_config(settings=["brokerServicePort=0", "webServicePort=0"]).config, opened)
        other.binary[0].bound.listen()
        taken = other.binary[0].bound.getsockname()[1]
        settings = ["brokerServicePort=0", f"brokerServicePortTls={taken}", "webServicePort=0", *files]
        with pytest.raises(CannotListen, match=f"binary service with TLS: port {taken} on 127.0.0.1 is already in use"):
            Services.take(load_config(settings=settings).config, opened)
        settings = [
            "brokerServicePort=0",
            "webServicePort=0",
            "brokerServicePortTls=0",
            "tlsCertificateFilePath=/not/there",
            f"tlsKeyFilePath={own.key}",
        ]
        with pytest.raises(UnusableTls, match="tlsCertificateFilePath=/not/there"):
            Services.take(load_config(settings=settings).config, opened)
