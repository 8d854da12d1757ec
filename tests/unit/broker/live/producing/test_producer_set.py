"""Who may publish, and who has to wait or to leave for another one."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import AccessMode, ProducerRequest, TopicSettings
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.model.errors import NotAllowed, ProducerBusy, ProducerFenced
from interpulse.model.names import TopicName

EXCLUSIVE, WAIT, FENCING = AccessMode.EXCLUSIVE, AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING


async def test_name_when_none_is_given_then_it_is_unique_also_after_a_restart(bench: Any) -> None:
    topic = await bench.topic()
    names = [(await bench.producer(topic, name))[0].name for name in ("", None)]
    await bench.restart()
    topic = await bench.topic()
    names.append((await bench.producer(topic, ""))[0].name)
    assert names == ["c-0-0", "c-0-1", "c-1-0"]


async def test_name_when_its_holder_is_alive_then_busy(bench: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "p")
    with pytest.raises(ProducerBusy, match="'p' is already connected"):
        await bench.producer(topic, "p")


async def test_name_when_its_holder_is_dead_then_it_is_taken_over(bench: Any) -> None:
    topic = await bench.topic()
    old, sink = await bench.producer(topic, "p")
    sink.alive = False
    new, _ = await bench.producer(topic, "p")
    assert old.closed
    assert topic.producers.by_name == {"p": new}
    old.close()
    assert topic.producers.by_name == {"p": new}


async def test_generated_name_when_it_comes_back_with_a_higher_epoch_then_it_replaces_itself(bench: Any) -> None:
    topic = await bench.topic()
    old, _ = await bench.producer(topic, "", user_provided_name=False)
    new, _ = await bench.producer(topic, old.name, user_provided_name=False, epoch=1)
    assert old.closed
    assert new.name == old.name
    with pytest.raises(ProducerBusy):
        await bench.producer(topic, old.name, user_provided_name=False, epoch=1)


async def test_given_name_when_the_same_producer_of_a_connection_comes_back_then_it_replaces_itself(bench: Any) -> None:
    topic = await bench.topic()
    old, sink = await bench.producer(topic, "p")
    await topic.add_producer(ProducerRequest(1, "p", epoch=1), sink)
    assert old.closed


async def test_exclusive_when_it_holds_the_topic_then_shared_are_busy_and_exclusive_fenced(bench: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    assert producer.topic_epoch == 0
    with pytest.raises(ProducerBusy, match="existing exclusive producer: e"):
        await bench.producer(topic, "s")
    with pytest.raises(ProducerFenced, match="existing exclusive producer: e"):
        await bench.producer(topic, "e2", access_mode=EXCLUSIVE)


async def test_exclusive_when_shared_are_connected_then_fenced(bench: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "s")
    with pytest.raises(ProducerFenced, match="existing shared producers"):
        await bench.producer(topic, "e", access_mode=EXCLUSIVE)


async def test_waiting_when_the_owner_leaves_then_its_turn_comes(bench: Any, settle: Any) -> None:
    topic = await bench.topic()
    owner, _ = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    waiting, sink = await bench.producer(topic, "w", access_mode=WAIT)
    assert not waiting.ready
    assert waiting.topic_epoch is None
    with pytest.raises(ProducerBusy):
        await bench.producer(topic, "s")
    owner.close()
    await settle()
    assert (waiting.ready, sink.ready, waiting.topic_epoch) == (True, [1], 1)


async def test_waiting_when_its_turn_comes_then_no_other_comes_first(bench: Any, settle: Any) -> None:
    topic = await bench.topic()
    owner, _ = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    waiting, _ = await bench.producer(topic, "w", access_mode=WAIT)
    owner.close()
    with pytest.raises(ProducerBusy):
        await bench.producer(topic, "s")
    await settle()
    assert topic.producers.by_name == {"w": waiting}


async def test_waiting_when_it_leaves_in_its_turn_then_the_topic_is_free(bench: Any, settle: Any) -> None:
    topic = await bench.topic()
    owner, _ = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    waiting, sink = await bench.producer(topic, "w", access_mode=WAIT)
    owner.close()
    waiting.close()
    await settle()
    await bench.producer(topic, "s")
    assert (sink.ready, sink.refused) == ([], [])


async def test_epoch_when_no_later_one_would_fit_then_refused(bench: Any) -> None:
    topic = await bench.topic()
    with pytest.raises(NotAllowed):
        await bench.producer(topic, "e", access_mode=EXCLUSIVE, topic_epoch=2**64 - 1)
    producer, _ = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    assert producer.topic_epoch == 0


async def test_fencing_disconnects_all_others(bench: Any) -> None:
    topic = await bench.topic()
    owner, owner_sink = await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    _, waiting_sink = await bench.producer(topic, "w", access_mode=WAIT)
    fencing, _ = await bench.producer(topic, "f", access_mode=FENCING)
    assert owner.closed
    assert owner_sink.closed == [1]
    assert [str(each) for each in waiting_sink.refused] == ["Fenced out"]
    assert fencing.topic_epoch == 1
    fencing.close()
    with pytest.raises(ProducerFenced, match="Current epoch: 1, Producer epoch: 0"):
        await bench.producer(topic, "e", access_mode=EXCLUSIVE, topic_epoch=0)


async def test_epoch_survives_a_restart(bench: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    await bench.restart()
    producer, _ = await bench.producer(await bench.topic(), "e", access_mode=EXCLUSIVE)
    assert producer.topic_epoch == 1


@pytest.mark.parametrize("persistent", [True, False])
async def test_what_producers_published_counts_also_when_they_are_gone(bench: Any, persistent: bool) -> None:
    topic = await bench.topic()
    if not persistent:
        topic = NonPersistentTopic(
            TopicName.parse("non-persistent://public/default/x"), bench.registry, TopicSettings()
        )
    gone, _ = await bench.producer(topic, "gone")
    stays, _ = await bench.producer(topic, "stays")
    for producer in (gone, stays):
        producer.publish([0], [bench.entry(0)])
    await bench.settle()
    gone.close()
    shown, measure = topic.producers.stats(0, 0), topic.producers.measure()
    assert [each["producerName"] for each in shown["publishers"]] == ["stays"]
    assert (shown["msgInCounter"], measure.messages_in, measure.producers) == (2, 2, 1)
    assert shown["bytesInCounter"] == measure.bytes_in == 2 * len(bench.entry(0))
    stays.close()
    assert topic.producers.measure().messages_in == 2
