"""A load that loses messages, or does not wait for them, would flatter."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.arrival import Arrival, arrival_at
from benchmarks.raw_frames import encode_flow, encode_send, whole_frames
from benchmarks.replicated_pairs import NAMESPACE, PACED_TOPIC, PARTITIONS, Cost
from interpulse.model.clusters import TenantInfo
from interpulse.sync import AdminClient
from interpulse.testing import InProcessBroker


class OneCluster:
    """A cluster that stands for both of a pair."""

    def __init__(self, broker: InProcessBroker) -> None:
        self.east = self.west = broker
        self.costs = iter((Cost(broker=1.0), Cost(broker=1.5, job=0.5)))

    def cost(self) -> Cost:
        return next(self.costs)


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    with InProcessBroker(tmp_path) as broker, AdminClient(broker.web_url) as admin:
        admin.tenants.create(NAMESPACE.partition("/")[0], TenantInfo(allowed_clusters=("standalone",)))
        admin.namespaces.create(NAMESPACE)
        admin.topics.create_partitioned(PACED_TOPIC, PARTITIONS)
        yield OneCluster(broker)


def test_arrival_when_measured_then_has_a_delay_for_each_message(pair: Any) -> None:
    arrival = arrival_at(pair, per_second=1_000, seconds=1.2)  # more messages than a consumer asks for at first
    assert len(arrival.delays) == 1_200
    assert 0 < arrival.delays[0] <= arrival.delays[-1] < arrival.seconds
    assert arrival.seconds > 1.1
    assert arrival.cpu_us == pytest.approx(1e6 / 1_200)


def test_arrival_when_asked_for_a_share_then_gives_the_delay_that_it_does_not_exceed() -> None:
    arrival = Arrival([number / 1000 for number in range(200)], 0.0, 10.0, Cost())
    assert [arrival.ms(share) for share in (0.5, 0.99, 1)] == pytest.approx([100, 198, 199])


def test_cost_when_a_process_is_new_then_counts_in_full() -> None:
    assert Cost(broker=5.0, worker=2.0).since(Cost(broker=4.0)) == {"broker": 1.0, "worker": 2.0}


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 100_000])
def test_frames_when_the_stream_comes_in_pieces_then_are_whole(piece_bytes: int) -> None:
    expected = [frame for number in range(20) for frame in (encode_send(number, b"payload"), encode_flow(1, number))]
    stream, rest = b"".join(expected), b""
    found: list[bytes] = []
    for start in range(0, len(stream), piece_bytes):
        frames, rest = whole_frames(rest + stream[start : start + piece_bytes])
        found += frames
    assert found == expected
    assert rest == b""
