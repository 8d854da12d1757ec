"""Connections and calls above the limits get the same codes and words from a real Pulsar and from ours."""

from __future__ import annotations

import http.client
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.interop.conftest import RealPulsarFactory
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONNECTIONS_MAX = 5
SETTINGS = {"brokerMaxConnectionsPerIp": str(CONNECTIONS_MAX)}
HEADER_BYTES_MAX = 8192


def play(service_url: str, web_url: str) -> None:
    with ExitStack() as inside:
        for _ in range(CONNECTIONS_MAX):
            inside.enter_context(RawClient(service_url))
        with RawClient(service_url, greet=False) as above:
            error = above.receive().command.error
            assert (error.request_id, error.error) == (2**64 - 1, pb.NotAllowedError)
            assert error.message.startswith("Reached the maximum number of connections on address/127.0.0.1:")
            assert above.closed_by_broker()
    assert status(web_url, "", HEADER_BYTES_MAX - 1000) == 200
    assert status(web_url, "", HEADER_BYTES_MAX + 1) == 431
    assert status(web_url, "x" * HEADER_BYTES_MAX, 1) == 414


def status(web_url: str, query: str, header_bytes: int) -> int:
    address = urlsplit(web_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        connection.request("GET", f"/admin/v2/clusters?a={query}", headers={"X": "x" * header_bytes})
        return connection.getresponse().status
    finally:
        connection.close()


def test_limits_of_our_broker(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, SETTINGS) as broker:
        play(broker.service_url, broker.web_url)


def test_limits_of_a_real_pulsar(start_real_pulsar: RealPulsarFactory) -> None:
    pulsar = start_real_pulsar(settings=SETTINGS)
    play(pulsar.service_url, pulsar.web_url)
