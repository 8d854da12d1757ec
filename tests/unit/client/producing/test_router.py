"""Partition choice."""

from collections import Counter

from interpulse.client.producing.router import Router


def test_key_when_routed_then_follows_the_hash_of_the_java_client() -> None:
    router = Router()
    assert router.choose("key1", 10) == 3288498 % 10
    assert {router.choose("test", 7) for _ in range(5)} == {3556498 % 7}
    assert Router(hashing="murmur3").choose("key1", 10) == 462881061 % 10


def test_messages_without_key_go_around_in_strides() -> None:
    router = Router(stride=3)
    chosen = [router.choose(None, 4) for _ in range(24)]
    assert Counter(chosen) == {0: 6, 1: 6, 2: 6, 3: 6}
    assert all(chosen[start : start + 3] == [chosen[start]] * 3 for start in range(0, 24, 3))


def test_messages_without_key_in_single_mode_stay_together() -> None:
    router = Router(mode="single")
    assert len({router.choose(None, 4) for _ in range(10)}) == 1
