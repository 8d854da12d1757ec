"""The file of a pair."""

import pytest

from interpulse.failover.pair_config import PairConfigError, load_pair_config, parse_pair_config
from interpulse.model.names import NamespaceName

EAST = {"cluster": "east", "service_url": "pulsar://127.0.0.1:1", "admin_url": "http://127.0.0.1:2"}
WEST = {"cluster": "west", "service_url": "pulsar://127.0.0.1:3", "admin_url": "http://127.0.0.1:4"}
PAIR = {"name": "orders", "sites": ["east", "west"], "namespaces": ["shop/orders", "shop/billing"], "state": "/s"}
GOOD = {"pair": PAIR, "east": EAST, "west": WEST}


def test_small_file_is_enough():
    config = parse_pair_config(GOOD)
    assert (config.sites, config.other("east"), config.other("west")) == (("east", "west"), "west", "east")
    assert config.namespaces == (NamespaceName.parse("shop/orders"), NamespaceName.parse("shop/billing"))
    assert str(config.control_topic) == "persistent://shop/orders/interpulse-failover-orders"
    assert (config.limits.drain_s, config.clients.move) == (600, ("redirect",))
    assert config.addresses["west"].url_of_clients == WEST["service_url"]


def test_keys_of_clients_and_limits_are_read():
    clients = {"move": ["redirect", "file", "hook"], "file": "/srv/url.json", "hook": ["/bin/move", "{to}"]}
    west = {**WEST, "client_url": "pulsar://west.example:6650", "token": "file:///west.jwt"}
    limits = {"drain_s": 5}
    control = {**PAIR, "control": "shop/control"}
    config = parse_pair_config({**GOOD, "pair": control, "clients": clients, "west": west, "limits": limits})
    assert (config.clients.file, config.clients.hook) == ("/srv/url.json", ("/bin/move", "{to}"))
    assert config.addresses["west"].url_of_clients == "pulsar://west.example:6650"
    assert (config.limits.drain_s, str(config.control)) == (5, "shop/control")
    assert "west.jwt" not in repr(config)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pair": {"name": "p"}}, r"\[pair\] needs sites, namespaces, state"),
        ({"pair": {**PAIR, "name": "a b"}}, r"\[pair\] name: 'a b' is part of the names of topics and producers"),
        ({"pair": {**PAIR, "sites": ["east", "east"]}}, "name two different sites"),
        ({"pair": {**PAIR, "sites": ["east", "limits"]}}, "other than pair, limits, clients"),
        ({"pair": {**PAIR, "namespaces": []}}, "namespaces is empty"),
        ({"pair": {**PAIR, "namespaces": ["a b"]}}, r"\[pair\] namespaces: Invalid namespace name: a b"),
        ({"pair": {**PAIR, "control": "a b"}}, r"\[pair\] control: "),
        ({"wset": WEST}, "unknown table 'wset'; did you mean west"),
        ({"west": {**WEST, "clent_url": "x"}}, r"unknown key of \[west\] 'clent_url'; did you mean client_url"),
        ({"west": {**WEST, "client_url": "west"}}, r"\[west\] client_url: 'west' does not look like pulsar://"),
        ({"west": {}}, r"\[west\] needs cluster, service_url, admin_url"),
        ({"west": {**WEST, "cluster": "east"}}, "east and west are the same cluster east"),
        ({"west": {**WEST, "service_url": EAST["service_url"]}}, "east and west share the broker address"),
        ({"west": {**WEST, "auth_params": "a"}}, r"\[west\] auth_params needs auth_plugin"),
        ({"limits": {"hold_s": 3601}}, r"\[limits\] hold_s: 3601 is more than 3600, an hour"),
        ({"limits": {"drain_s": 0}}, r"\[limits\] drain_s: 0 is not a positive number"),
        ({"limits": {"drain": 5}}, r"unknown key of \[limits\] 'drain'; did you mean drain_s"),
        ({"clients": {"move": ["dns"]}}, "move: 'dns' is not one of redirect, file, hook"),
        ({"clients": {"move": ["file"]}}, r"file and move = \[\"file\"\] belong together"),
        ({"clients": {"hook": ["/bin/x"]}}, r"hook and move = \[\"hook\"\] belong together"),
    ],
)
def test_problems_are_named(change, problem):
    with pytest.raises(PairConfigError, match=problem):
        parse_pair_config({**GOOD, **change})


def test_all_problems_are_reported_together():
    with pytest.raises(PairConfigError) as caught:
        parse_pair_config({"pair": {**PAIR, "stat": "x"}, "clients": {"move": ["dns"]}})
    for part in ("'stat'", "[east] needs", "[west] needs", "'dns'"):
        assert part in str(caught.value)


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PairConfigError, match=r"absent\.toml"):
        load_pair_config(str(tmp_path / "absent.toml"))
