"""Addresses of services: what stands in a URL, and what is said when one cannot be had."""

import socket

import pytest

from interpulse.serving.listening import CannotListen, ServiceAddress, advertised_host, host_in_url


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("pulsar.example", "pulsar.example"),
        ("0.0.0.0", "localhost"),
        ("::", "localhost"),
        ("fd00::1", "[fd00::1]"),
    ],
)
def test_host_when_in_a_url_then_can_be_connected_to(host: str, expected: str) -> None:
    assert host_in_url(host) == expected


@pytest.mark.parametrize("host", ["pulsar:6650", "pulsar://pulsar", "10.0.0.1:6650", "[fd00::1]", "a/b"])
def test_host_when_it_has_a_scheme_or_a_port_then_is_none(host: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        host_in_url(host)


def test_address_when_taken_before_it_is_listened_on_then_has_its_port() -> None:
    with ServiceAddress("web service", "127.0.0.1", 0).bind() as bound:
        port = bound.getsockname()[1]
        assert port > 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_address_when_in_use_then_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"web service: port {port} on 127.0.0.1 is already in use"):
            ServiceAddress("web service", "127.0.0.1", port).bind()


def test_address_when_this_machine_has_none_such_then_is_named_with_the_reason() -> None:
    with pytest.raises(CannotListen, match=r"binary service: cannot listen on 203.0.113.1 port 0: Cannot assign"):
        ServiceAddress("binary service", "203.0.113.1", 0).bind()


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_advertised_address_when_it_is_every_address_then_is_refused_with_the_remedy(address: str) -> None:
    with pytest.raises(CannotListen, match=f"^advertisedAddress={address}: no client can connect to it; give a name"):
        advertised_host(address, listening="0.0.0.0")


@pytest.mark.parametrize("shown_to_clients", [True, False])
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_address_when_none_is_advertised_then_warned_of_if_clients_are_told(
    caplog: pytest.LogCaptureFixture, address: str, shown_to_clients: bool
) -> None:
    assert advertised_host("", listening=address, shown_to_clients=shown_to_clients) == "localhost"
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == shown_to_clients
    assert not any("--" in text for text in warned), "not every program has the flag"
