"""A consumer that acknowledges the wrong messages, or takes more than it should, would measure something else."""

import pytest

from benchmarks.raw_frames import encode, encode_flow
from benchmarks.raw_load import PERMITS, Permits
from benchmarks.shared_load import read_ids
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder


def message(entry_id: int) -> bytes:
    position = pb.MessageIdData(ledgerId=7, entryId=entry_id)
    return encode(
        pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=pb.CommandMessage(consumer_id=1, message_id=position))
    )


class Connection:
    """Keeps what is sent, as the socket of a connection."""

    def __init__(self) -> None:
        self.socket = self
        self.sent = b""

    def sendall(self, frames: bytes) -> None:
        self.sent += frames

    @property
    def permits(self) -> list[int]:
        return [frame.command.flow.messagePermits for frame in FrameDecoder().feed(self.sent)]


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 100_000])
def test_ids_when_the_stream_comes_in_pieces_then_are_those_of_all_messages(piece_bytes: int) -> None:
    stream = b"".join(message(number) + encode_flow(1, 5) for number in range(50))
    found: list[int] = []
    rest = b""
    for start in range(0, len(stream), piece_bytes):
        ids, rest = read_ids(rest + stream[start : start + piece_bytes])
        found += [each.entryId for each in ids]
    assert found == list(range(50))
    assert rest == b""


def test_permits_when_messages_come_then_are_given_by_half_and_never_more_than_the_total() -> None:
    connection = Connection()
    permits = Permits(connection, PERMITS + PERMITS // 2 + 10)  # type: ignore[arg-type]
    for _ in range(4):
        permits.on_messages(PERMITS // 2 - 1)
    permits.on_messages(4)
    assert connection.permits == [PERMITS, PERMITS // 2, 10]
