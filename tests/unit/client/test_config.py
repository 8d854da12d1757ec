"""Service URLs."""

import pickle

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig, ServiceUrl


@pytest.mark.parametrize(
    ("text", "brokers"),
    [
        ("pulsar://a:1", [BrokerAddress("a", 1)]),
        ("pulsar://a", [BrokerAddress("a", 6650)]),
        ("pulsar+ssl://a", [BrokerAddress("a", 6651, tls=True)]),
        ("pulsar://a:1,b:2/", [BrokerAddress("a", 1), BrokerAddress("b", 2)]),
        ("pulsar://[::1]:1", [BrokerAddress("::1", 1)]),
        ("http://a:8080,b:8080", []),
    ],
)
def test_service_url_when_well_formed_then_names_its_brokers(text: str, brokers: list[BrokerAddress]) -> None:
    url = ServiceUrl.parse(text)
    assert list(url.brokers) == brokers
    assert url.is_http == (not brokers)


@pytest.mark.parametrize("text", ["", "a:6650", "kafka://a:1", "pulsar://", "pulsar://a:x", "pulsar://a:1/topic"])
def test_service_url_when_malformed_then_value_error_names_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"service URL|broker URL"):
        ServiceUrl.parse(text)


def test_address_when_printed_then_can_be_read_again() -> None:
    for address in (BrokerAddress("a", 1), BrokerAddress("::1", 2, tls=True)):
        assert BrokerAddress.parse(str(address)) == address
    assert str(BrokerAddress("a", 1, behind="b:2")) == "pulsar://a:1 (for b:2)"


def test_config_when_pickled_then_comes_back_equal() -> None:
    config = ClientConfig("pulsar://a:1", operation_timeout_ms=5)
    assert pickle.loads(pickle.dumps(config)) == config
