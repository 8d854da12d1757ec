"""Whatever creates, grows, opens and deletes the same topics at the same time leaves order behind.

The store is slow as the dice fall, so that every seed is another interleaving; a seed that fails is one to keep.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics import deletion
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.errors import AlreadyExists, NotAllowed, PulsarError, TopicLimitReached
from interpulse.model.names import NON_PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import PARTITIONED, InactiveTopicPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from tests.support.lifecycle_bench import LifecycleBench, SlowStore, disorder, named
from tests.support.memory_storage import MemoryMetadataStore

TRIAL = NamespaceName("public", "trial")
X, Y = named("x"), named("y")
FLEETING = TopicName.of(NON_PERSISTENT, "public", "trial", "z")
SEEDS = 60
WORKERS = 8

Deed = Callable[[LifecycleBench, random.Random], Awaitable[Any]]


def any_topic(dice: random.Random) -> TopicName:
    return dice.choice((X, X, Y))


def any_partition(dice: random.Random) -> TopicName:
    return dice.choice((X, X, X, Y)).partition(dice.choice((0, 0, 1, 2)))


async def open_and_subscribe(bench: LifecycleBench, dice: random.Random) -> None:
    topic = await bench.registry.open(dice.choice((any_topic(dice), any_partition(dice), FLEETING)))
    await topic.create_subscription(dice.choice("ab"))


async def unload(bench: LifecycleBench, dice: random.Random) -> None:
    await bench.registry.unload(dice.choice((any_topic(dice), any_partition(dice), FLEETING)))


async def delete_one(bench: LifecycleBench, dice: random.Random) -> None:
    name = dice.choice((any_topic(dice), any_partition(dice), any_partition(dice), FLEETING))
    await bench.deletion.topic(name, force=dice.random() < 0.7)


async def delete_partitioned(bench: LifecycleBench, dice: random.Random) -> None:
    await bench.deletion.partitioned_topic(any_topic(dice), force=dice.random() < 0.7)


async def register_schema(bench: LifecycleBench, dice: random.Random) -> None:
    await bench.schemas.register(any_topic(dice), SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)


async def set_policies(bench: LifecycleBench, dice: random.Random) -> None:
    policies = TopicPolicies(InactiveTopicPolicies(max_inactive_seconds=dice.randrange(100)))
    await TopicPolicyRecords(bench.store, bench.lifecycle).update(dice.choice((X, Y, FLEETING)), lambda _: policies)


async def delete_namespace(bench: LifecycleBench, dice: random.Random) -> None:
    await bench.deletion.namespace(TRIAL, force=dice.random() < 0.6)


DEEDS: dict[str, tuple[int, Deed]] = {
    "create-partitioned": (
        4,
        lambda bench, dice: bench.lifecycle.create_partitioned(any_topic(dice), dice.randint(1, 3)),
    ),
    "create-plain": (3, lambda bench, dice: bench.lifecycle.create_plain(any_topic(dice))),
    "restore-partition": (4, lambda bench, dice: bench.lifecycle.create_plain(any_partition(dice))),
    "create-missed": (1, lambda bench, dice: bench.lifecycle.create_missed_partitions(any_topic(dice))),
    "ask": (2, lambda bench, dice: bench.lifecycle.partitions(any_topic(dice), create=True)),
    "expand": (4, lambda bench, dice: bench.lifecycle.expand(any_topic(dice), dice.randint(2, 5), force=True)),
    "set-properties": (1, lambda bench, dice: bench.lifecycle.set_properties(any_topic(dice), lambda old: {"n": "1"})),
    "open": (6, open_and_subscribe),
    "unload": (1, unload),
    "delete-one": (3, delete_one),
    "delete-partitioned": (4, delete_partitioned),
    "delete-orphaned": (1, lambda bench, dice: bench.deletion.orphaned_metadata(any_topic(dice))),
    "register-schema": (2, register_schema),
    "set-policies": (2, set_policies),
    "delete-namespace": (1, delete_namespace),
    "create-namespace": (3, lambda bench, dice: bench.namespaces.create(TRIAL, NamespacePolicies())),
}


async def slow_bench(dice: random.Random) -> tuple[LifecycleBench, MemoryMetadataStore]:
    first = await LifecycleBench.first()
    await first.namespaces.create(TRIAL, NamespacePolicies())
    assert isinstance(first.store, MemoryMetadataStore)
    return LifecycleBench(SlowStore(first.store, dice)), first.store


async def work(bench: LifecycleBench, dice: random.Random, done: list[str]) -> None:
    """Do something now and then; refusals are answers like others."""
    for _ in range(dice.randint(3, 8)):
        (deed,) = dice.choices(list(DEEDS), [weight for weight, _ in DEEDS.values()])
        for _ in range(dice.choice((0, 0, 1, 3, 10))):
            await asyncio.sleep(0)
        try:
            await DEEDS[deed][1](bench, dice)
            done.append(deed)
        except PulsarError:
            done.append(f"{deed} refused")


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_topics_when_everything_happens_to_them_at_once_then_what_is_left_is_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "_KEYS_AT_ONCE", 2)
    dice = random.Random(seed)
    bench, store = await slow_bench(dice)
    bench.settings = BrokerConfig(
        allow_auto_topic_creation_type=dice.choice((PARTITIONED, "non-partitioned")), default_num_partitions=2
    )
    done: list[str] = []
    await asyncio.gather(*(work(bench, dice, done) for _ in range(WORKERS)))
    assert await disorder(store) == [], done
    await check_loaded(bench)
    await bench.registry.flush()
    assert await disorder(store) == [], done
    await bench.registry.close()
    assert await disorder(store) == [], done


async def check_loaded(bench: LifecycleBench) -> None:
    """What is loaded exists, and still works."""
    for topic in bench.registry.topics():
        assert await bench.namespaces.find_policies(topic.name.namespace_name) is not None, topic.name
        if topic.name.is_persistent:
            existence = await bench.lifecycle.existence(topic.name)
            assert existence.kind.value == "non-partitioned", topic.name
            await topic.create_subscription("still-works")


async def test_every_deed_is_sometimes_done_and_sometimes_refused() -> None:
    """The dice reach everything: a simulation that only ever refuses would prove nothing."""
    done: list[str] = []
    for seed in range(20):
        dice = random.Random(seed)
        bench, _ = await slow_bench(dice)
        await asyncio.gather(*(work(bench, dice, done) for _ in range(WORKERS)))
        await bench.registry.close()
    not_always = {"ask refused", "unload refused", "delete-orphaned refused", "delete-orphaned", "restore-partition"}
    expected = {*DEEDS, *(f"{deed} refused" for deed in DEEDS)} - not_always
    assert expected - set(done) == set()


async def outcomes(*work: Awaitable[Any]) -> list[type[BaseException] | None]:
    """What came of each: None, or the class of its refusal."""
    results = await asyncio.gather(*work, return_exceptions=True)
    return [type(result) if isinstance(result, BaseException) else None for result in results]


@pytest.mark.parametrize("seed", range(3))
async def test_creation_when_a_hundred_want_the_same_then_one_does_it(seed: int) -> None:
    bench, store = await slow_bench(random.Random(seed))
    found = await outcomes(*(bench.lifecycle.create_partitioned(X, 3) for _ in range(100)))
    assert (found.count(None), found.count(AlreadyExists)) == (1, 99)
    assert await disorder(store) == []


@pytest.mark.parametrize("seed", range(3))
async def test_creation_when_a_hundred_want_different_ones_then_all_get_theirs(seed: int) -> None:
    bench, store = await slow_bench(random.Random(seed))
    names = [named(f"t{number}") for number in range(100)]
    assert set(await outcomes(*(bench.lifecycle.create_partitioned(name, 2) for name in names))) == {None}
    assert len(await bench.lifecycle.list_topics(TRIAL, "persistent", include_system=True)) == 200
    assert await disorder(store) == []


@pytest.mark.parametrize("seed", range(3))
async def test_question_that_creates_when_a_hundred_ask_then_all_hear_the_same(seed: int) -> None:
    bench, store = await slow_bench(random.Random(seed))
    bench.settings = BrokerConfig(allow_auto_topic_creation_type=PARTITIONED, default_num_partitions=4)
    assert await asyncio.gather(*(bench.lifecycle.partitions(X, create=True) for _ in range(100))) == [4] * 100
    assert await disorder(store) == []


@pytest.mark.parametrize("seed", range(5))
async def test_limit_when_a_hundred_create_at_once_then_it_is_reached_and_never_passed(seed: int) -> None:
    dice = random.Random(seed)
    bench, _ = await slow_bench(dice)
    await bench.lifecycle.create_plain(named("already"))
    await bench.namespaces.update_policies(TRIAL, lambda old: old.changed(max_topics_per_namespace=20))
    names = [named(f"t{number}") for number in range(100)]
    found = await outcomes(*(bench.lifecycle.create_plain(name) for name in names))
    assert found.count(None) == 19
    assert set(found) <= {None, NotAllowed, TopicLimitReached}
    for name, outcome in zip(names, found, strict=True):
        if outcome is None and dice.random() < 0.5:
            await bench.deletion.topic(name, force=False)
    left = 20 - len(await bench.lifecycle.list_topics(TRIAL, "persistent", include_system=True))
    again = await outcomes(*(bench.lifecycle.create_plain(named(f"u{number}")) for number in range(30)))
    assert again.count(None) == left > 0
