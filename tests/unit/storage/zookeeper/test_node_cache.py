from __future__ import annotations

from interpulse.storage.api import Versioned
from interpulse.storage.zookeeper.node_cache import ABSENT, NOT_CACHED, CachedNode, NodeCache, cached_node
from interpulse.storage.zookeeper.records import Stat


def node(zxid: int, value: bytes = b"") -> CachedNode:
    return CachedNode(Versioned(value, zxid), 0)


def stat(zxid: int) -> Stat:
    return Stat(1, zxid, 0, 0, 1, 0, 0, 0, 0, 0, 0)


def test_answer_when_the_key_changed_since_the_request_then_not_cached() -> None:
    cache = NodeCache(["/t"], 10)
    asked = cache.now
    cache.changed("/t/a", 7, came_or_went=False)
    cache.remember("/t/a", node(6), asked)
    cache.remember("/t/b", node(6), asked)
    assert cache.node("/t/a") is NOT_CACHED
    assert cache.node("/t/b") == node(6)
    cache.remember("/t/a", node(7), cache.now)
    assert cache.node("/t/a") == node(7)


def test_list_when_a_child_comes_or_goes_then_dropped() -> None:
    cache = NodeCache(["/"], 10)
    cache.remember_names("/", ["a"], cache.now)
    cache.remember_names("/a", ["x"], cache.now)
    cache.changed("/a", 7, came_or_went=False)
    assert cache.names("/") == ["a"]
    asked = cache.now
    cache.changed("/b", 8, came_or_went=True)
    cache.remember_names("/", ["a"], asked)
    assert cache.names("/") is None
    assert cache.names("/a") == ["x"]


def test_own_commit_when_another_one_followed_then_not_cached() -> None:
    cache = NodeCache(["/t"], 10)
    cache.remember_committed(
        "/t/a", cached_node(b"1", stat(5)), 5
    )  # a server that has not told: nothing is known to be the newest
    assert cache.node("/t/a") is NOT_CACHED
    cache.changed("/t/a", 5, came_or_went=False)
    cache.remember_committed("/t/a", cached_node(b"1", stat(5)), 5)
    assert cache.node("/t/a").stored == (b"1", 5)
    cache.changed("/t/a", 6, came_or_went=False)
    cache.remember_committed("/t/a", cached_node(b"1", stat(5)), 5)
    assert cache.node("/t/a") is NOT_CACHED
    cache.changed("/t/a", 7, came_or_went=True)
    cache.remember_committed("/t/a", ABSENT, 7)
    assert cache.node("/t/a").stored is None


def test_cache_when_full_then_the_oldest_goes_and_large_values_are_skipped() -> None:
    cache = NodeCache(["/t"], 2)
    for key, value in [("/t/a", b""), ("/t/large", bytes(5000)), ("/t/b", b""), ("/t/c", b""), ("/other", b"")]:
        cache.remember(key, node(1, value), cache.now)
    remembered = [key for key in ("/t/a", "/t/large", "/t/b", "/t/c", "/other") if cache.node(key) is not NOT_CACHED]
    assert remembered == ["/t/b", "/t/c"]
    cache.remember_names("/t", ["x"] * 150_000, cache.now)
    cache.remember_names("/t/a", ["x"] * 150_000, cache.now)
    assert cache.names("/t") is None
    cache.clear()
    assert cache.names("/t/a") is None
    assert cache.node("/t/b") is NOT_CACHED


def test_change_when_too_old_to_be_remembered_then_counts_as_recent() -> None:
    cache = NodeCache(["/t"], 10)
    asked = cache.now
    for number in range(10_001):
        cache.changed(f"/t/{number}", number, came_or_went=False)
    cache.remember("/t/other", node(1), asked)
    assert cache.node("/t/other") is NOT_CACHED
