"""Intervals of keep-alive, and a peer that is silent in one."""

import pytest

from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.keep_alive import KeepAlive


def test_interval_when_it_ends_then_the_next_one_begins_at_that_moment() -> None:
    keep_alive = KeepAlive(30.0, 100.0)
    assert not keep_alive.elapsed(129.9)
    assert keep_alive.next_tick == 130.0
    assert keep_alive.elapsed(131.0)
    assert keep_alive.next_tick == 161.0
    assert not keep_alive.elapsed(131.0)


def test_peer_when_it_is_silent_then_remote_protocol_error_names_the_interval() -> None:
    keep_alive = KeepAlive(0.5, 0.0)
    with pytest.raises(RemoteProtocolError, match=r"^nothing heard for 0\.5 s$"):
        keep_alive.check_heard()
    keep_alive.heard = True
    keep_alive.check_heard()
