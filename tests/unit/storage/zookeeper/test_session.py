from __future__ import annotations

import pytest

from interpulse.storage.zookeeper.session import Server, parse_servers


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk1", [Server("zk1", 2181)], ""),
        ("zk1:2182, zk2:2183", [Server("zk1", 2182), Server("zk2", 2183)], ""),
        ("zk:zk1:2181,zk2:2181/pulsar/a", [Server("zk1", 2181), Server("zk2", 2181)], "/pulsar/a"),
        ("zk1:2181/", [Server("zk1", 2181)], ""),
        ("[::1]:2182,[::2]", [Server("::1", 2182), Server("::2", 2181)], ""),
    ],
)
def test_connect_string_when_parsed_then_servers_and_path(text: str, servers: list[Server], chroot: str) -> None:
    assert parse_servers(text) == (tuple(servers), chroot)


@pytest.mark.parametrize("text", ["", "zk:", "a,,b", "a:port", "a:0", "a:70000", "a:", "[::1", "[::1]x", "a:1/b//c"])
def test_connect_string_when_it_names_no_servers_then_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not name ZooKeeper servers: .*; write host1:2181,host2:2181/path"):
        parse_servers(text)


def test_servers_when_printed_then_as_they_are_written() -> None:
    assert str(parse_servers("zk:a:1,[::1]:2/c")) == "a:1,[::1]:2/c"
