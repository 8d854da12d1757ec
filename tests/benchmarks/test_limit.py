"""A limit that moves other bytes than the figure, or answers before they are on the disk, is no limit of it."""

from pathlib import Path

import pytest

from benchmarks.limit import Exchange, LimitConnection, at_once, one_by_one, running
from benchmarks.limit_server import LOOPS
from benchmarks.raw_frames import encode_flow
from interpulse.wire import pulsar_api_pb2 as pb

FLOW = pb.BaseCommand.FLOW
MESSAGES = 1000


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("durable", [False, True])
def test_exchange_when_requests_go_out_then_the_whole_answer_comes(tmp_path: Path, loop: str, durable: bool) -> None:
    exchange = Exchange(b"x" * 100_003, encode_flow(1, 5) * MESSAGES, durable=durable)
    with running(tmp_path, loop) as server:
        assert at_once(server, exchange, FLOW, 6 * MESSAGES, times=6, connections=3) > 0
        assert one_by_one(server, exchange, 20, connections=3) > 0


def test_durable_exchange_when_it_is_answered_then_the_request_is_in_the_file(tmp_path: Path) -> None:
    exchange = Exchange(b"request", b"answer", durable=True)
    with running(tmp_path) as server:
        one_by_one(server, exchange, 5)
        (log,) = tmp_path.rglob("log")
        assert log.read_bytes() == b"request" * 5


def test_exchange_when_half_of_a_request_came_then_half_of_the_answer_goes_back(tmp_path: Path) -> None:
    with running(tmp_path) as server, LimitConnection(server, Exchange(b"12345678", b"abcd")) as connection:
        connection.socket.sendall(b"1234")
        assert connection.socket.recv(100) == b"ab"
        connection.socket.sendall(b"5678")
        assert connection.socket.recv(100) == b"cd"
