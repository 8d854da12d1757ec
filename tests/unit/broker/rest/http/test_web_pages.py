"""The requests that may come from a web page of another site."""

from __future__ import annotations

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http.web_pages import KnownHosts, check_origin, check_source_of_creation
from interpulse.model.errors import Forbidden

ANYWHERE = BrokerConfig(bind_address="0.0.0.0")
NAMED = BrokerConfig(
    bind_address="10.1.2.3", advertised_address="Broker.lan", web_service_allowed_hosts="pulsar, .example.com"
)
ANY = BrokerConfig(web_service_allowed_hosts="*")


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Workstation")


@pytest.mark.parametrize(
    ("config", "host"),
    [
        (BrokerConfig(), "localhost:8080"),
        (BrokerConfig(), "LOCALHOST."),
        (BrokerConfig(), "pulsar.localhost:80"),
        (BrokerConfig(), "127.0.0.1:8080"),
        (BrokerConfig(), "127.0.0.53"),
        (BrokerConfig(), "[::1]:8080"),
        (BrokerConfig(), "192.168.1.10:18080"),
        (ANYWHERE, "workstation:8080"),
        (ANYWHERE, "10.0.0.7:8080"),
        (ANYWHERE, "[fe80::1]:8080"),
        (NAMED, "10.1.2.3:8080"),
        (NAMED, "broker.LAN:8080"),
        (NAMED, "pulsar:8080"),
        (NAMED, "example.com"),
        (NAMED, "a.b.example.com:443"),
        (NAMED, "localhost:8080"),
        (ANY, "whatever.example:8080"),
        (BrokerConfig(), ""),
    ],
)
def test_host_when_it_is_a_name_of_the_broker_or_an_address_then_accepted(config: BrokerConfig, host: str) -> None:
    KnownHosts.of(config).check({"Host": host} if host else {})


@pytest.mark.parametrize(
    ("config", "host"),
    [
        (BrokerConfig(), "evil.example"),
        (BrokerConfig(), "evil.example:8080"),
        (BrokerConfig(), "workstation:8080"),
        (BrokerConfig(), "localhost.evil.example"),
        (BrokerConfig(), "notlocalhost"),
        (BrokerConfig(), "127.0.0.1.evil.example:8080"),
        (BrokerConfig(), "[::1"),
        (BrokerConfig(), ":8080"),
        (ANYWHERE, "evil.example:8080"),
        (NAMED, "badexample.com"),
        (NAMED, "pulsar.evil.example"),
        (NAMED, "workstation"),
    ],
)
def test_host_when_it_is_another_name_then_refused_with_the_setting(config: BrokerConfig, host: str) -> None:
    with pytest.raises(Forbidden) as refused:
        KnownHosts.of(config).check({"Host": host})
    assert str(refused.value).startswith(f"Host: {host} is not a name of this broker")
    assert str(refused.value).endswith("or add the name to webServiceAllowedHosts")


def test_host_when_refused_then_names_of_ours_are_not_told() -> None:
    """A page that has rebound its name can read the refusal."""
    with pytest.raises(Forbidden) as refused:
        KnownHosts.of(NAMED).check({"Host": "evil.example"})
    assert not [name for name in ("10.1.2.3", "broker.lan", "pulsar,", "example.com") if name in str(refused.value)]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "evil.example"},
        {"Origin": "http://localhost:8080", "Host": "localhost:8080"},
        {"Origin": "HTTPS://Broker.lan", "Host": "broker.LAN"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://dashboard.lan", "Host": "broker:8080"},
        {"Sec-Fetch-Site": "none", "Origin": "chrome-extension://abc"},
    ],
    ids=["a program", "no page", "same origin", "same in other case", "browser says same", "a person"],
)
def test_origin_when_no_page_of_others_sends_it_then_accepted(headers: dict[str, str]) -> None:
    check_origin(headers)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Origin": "http://evil.example", "Host": "localhost:8080"}, "Origin: http://evil.example"),
        ({"Origin": "http://localhost:3000", "Host": "localhost:8080"}, "Origin: http://localhost:3000"),
        ({"Origin": "null", "Host": "localhost:8080"}, "Origin: null"),
        ({"Origin": "", "Host": "localhost:8080"}, "Origin: "),
        ({"Origin": "null"}, "Origin: null"),
        ({"Sec-Fetch-Site": "cross-site", "Host": "localhost"}, "Sec-Fetch-Site: cross-site"),
        ({"Sec-Fetch-Site": "same-site", "Host": "localhost"}, "Sec-Fetch-Site: same-site"),
        ({"Sec-Fetch-Site": "", "Host": "localhost"}, "Sec-Fetch-Site: "),
        ({"Sec-Fetch-Site": "x\u2028y", "Host": "localhost"}, "Sec-Fetch-Site: 'x\\u2028y'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_origin_when_a_page_of_others_sends_it_then_refused_with_the_header(headers: dict[str, str], told: str) -> None:
    with pytest.raises(Forbidden) as refused:
        check_origin(headers)
    assert str(refused.value).startswith(f"{told} says that a web page from elsewhere sends this request")
    assert refused.value.http_status == 403


BROWSER = {"Host": "10.0.0.1:8080", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "10.0.0.1:8080", "User-Agent": "Pulsar-Java-v5.0.0"},
        {"Host": "10.0.0.1:8080", "User-Agent": "Go-http-client/1.1"},
        {"Host": "10.0.0.1:8080"},
        BROWSER | {"Sec-Fetch-Site": "same-origin"},
        BROWSER | {"Origin": "http://10.0.0.1:8080"},
        BROWSER | {"Referer": "http://10.0.0.1:8080/console/"},
    ],
)
def test_creation_when_a_program_or_our_own_page_asks_then_is_admitted(headers: dict[str, str]) -> None:
    check_origin(headers)
    check_source_of_creation(headers)


@pytest.mark.parametrize("headers", [BROWSER, BROWSER | {"Referer": "http://evil.example/http://10.0.0.1:8080/"}])
def test_creation_when_a_browser_does_not_say_for_whom_then_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="an image of any page could do that, so no topic is created"):
        check_source_of_creation(headers)
