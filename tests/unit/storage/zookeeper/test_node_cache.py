from __future__ import annotations

from interpulse.storage.api import Versioned
from interpulse.storage.zookeeper.node_cache import UNKNOWN, KnownNode, KnownNodes
from interpulse.storage.zookeeper.records import Stat


def node(zxid: int, value: bytes = b"") -> KnownNode:
    return KnownNode(Versioned(value, zxid), 0)


def stat(zxid: int) -> Stat:
    return Stat(1, zxid, 0, 0, 1, 0, 0, 0, 0, 0, 0)


def test_answer_when_the_key_changed_since_the_question_then_not_remembered() -> None:
    known = KnownNodes(["/t"], 10)
    asked = known.now
    known.changed("/t/a", 7, came_or_went=False)
    known.remember("/t/a", node(6), asked)
    known.remember("/t/b", node(6), asked)
    assert known.node("/t/a") is UNKNOWN
    assert known.node("/t/b") == node(6)
    known.remember("/t/a", node(7), known.now)
    assert known.node("/t/a") == node(7)


def test_list_when_a_child_comes_or_goes_then_forgotten() -> None:
    known = KnownNodes(["/"], 10)
    known.remember_names("/", ["a"], known.now)
    known.remember_names("/a", ["x"], known.now)
    known.changed("/a", 7, came_or_went=False)
    assert known.names("/") == ["a"]
    asked = known.now
    known.changed("/b", 8, came_or_went=True)
    known.remember_names("/", ["a"], asked)
    assert known.names("/") is None
    assert known.names("/a") == ["x"]


def test_own_commit_when_another_one_followed_then_not_remembered() -> None:
    known = KnownNodes(["/t"], 10)
    known.remember_written("/t/a", b"1", stat(5))  # a server that has not told: nothing is known to be the newest
    assert known.node("/t/a") is UNKNOWN
    known.changed("/t/a", 5, came_or_went=False)
    known.remember_written("/t/a", b"1", stat(5))
    assert known.node("/t/a").found == (b"1", 5)
    known.changed("/t/a", 6, came_or_went=False)
    known.remember_written("/t/a", b"1", stat(5))
    assert known.node("/t/a") is UNKNOWN
    known.changed("/t/a", 7, came_or_went=True)
    known.remember_deleted("/t/a", 7)
    assert known.node("/t/a").found is None


def test_memory_when_full_then_the_oldest_goes_and_large_values_never_come() -> None:
    known = KnownNodes(["/t"], 2)
    for key, value in [("/t/a", b""), ("/t/large", bytes(5000)), ("/t/b", b""), ("/t/c", b""), ("/other", b"")]:
        known.remember(key, node(1, value), known.now)
    remembered = [key for key in ("/t/a", "/t/large", "/t/b", "/t/c", "/other") if known.node(key) is not UNKNOWN]
    assert remembered == ["/t/b", "/t/c"]
    known.remember_names("/t", ["x"] * 150_000, known.now)
    known.remember_names("/t/a", ["x"] * 150_000, known.now)
    assert known.names("/t") is None
    known.clear()
    assert known.names("/t/a") is None
    assert known.node("/t/b") is UNKNOWN


def test_change_when_it_is_too_long_ago_to_be_remembered_then_counts_as_one_since() -> None:
    known = KnownNodes(["/t"], 10)
    asked = known.now
    for number in range(10_001):
        known.changed(f"/t/{number}", number, came_or_went=False)
    known.remember("/t/other", node(1), asked)
    assert known.node("/t/other") is UNKNOWN
