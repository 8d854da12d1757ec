"""A load ends, whatever the broker does."""

import socket

import pytest

from benchmarks.raw_load import Refused, receive_until


def test_load_when_a_broker_sends_too_little_to_be_done_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.raw_load.LOAD_SECONDS_MAX", 0)
    ours, theirs = socket.socketpair()
    theirs.sendall(b"some")
    with ours, theirs, pytest.raises(Refused, match="not done within 0 s"):
        receive_until(lambda: False, [Ends(ours)], lambda ends, received: theirs.sendall(received + b"more"))


class Ends:
    """What has a socket, with something to read."""

    def __init__(self, own: socket.socket) -> None:
        self.socket = own
