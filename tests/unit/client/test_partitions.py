"""Partitions that are named and opened together."""

import pytest

from interpulse.client.partitions import open_all, partition_names
from interpulse.model.errors import NotAllowed
from interpulse.model.names import TopicName

TOPIC = TopicName.parse("persistent://public/default/t")


class OnePartition:
    """Opens, or fails to; remembers what was asked of it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked: list[str] = []

    async def open(self) -> None:
        self.asked.append("open")
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.asked.append("close")


def test_names_of_partitions() -> None:
    assert partition_names(TOPIC, 0) == [TOPIC]
    assert [str(name) for name in partition_names(TOPIC, 3, first=1)] == [
        f"{TOPIC}-partition-1",
        f"{TOPIC}-partition-2",
    ]


async def test_partitions_when_all_can_be_opened_then_none_is_closed() -> None:
    several = [OnePartition(), OnePartition()]
    await open_all(several)
    assert [each.asked for each in several] == [["open"], ["open"]]


async def test_partitions_when_one_cannot_be_opened_then_all_are_closed_again() -> None:
    several = [OnePartition(), OnePartition(NotAllowed("never")), OnePartition()]
    with pytest.raises(NotAllowed, match="never"):
        await open_all(several)
    assert [each.asked for each in several] == [["open", "close"]] * 3
