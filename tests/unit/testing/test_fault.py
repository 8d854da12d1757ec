"""One fault: when it acts, and when it is over."""

from __future__ import annotations

import threading

import pytest

from interpulse.testing import Fault


def test_fault_when_it_has_a_number_of_times_then_ends_by_itself() -> None:
    ended: list[tuple[int, bool]] = []
    fault = Fault("broken", 2, lambda by_hand: ended.append((fault.count, by_hand)))
    assert [fault.act() for _ in range(4)] == [True, True, False, False]
    assert (fault.count, fault.active, ended) == (2, False, [(2, False)])
    fault.end()
    assert ended == [(2, False)]


def test_fault_when_its_block_ends_then_is_over() -> None:
    ended: list[bool] = []
    with Fault("broken", None, ended.append) as fault:
        assert fault.act()
        assert repr(fault) == "<broken, on, acted 1 times>"
    assert not fault.act()
    assert (fault.count, ended) == (1, [True])


def test_fault_when_waited_for_then_returns_as_soon_as_it_has_acted() -> None:
    fault = Fault("broken", 2, lambda _: None)
    threading.Thread(target=lambda: [fault.act() for _ in range(2)]).start()
    fault.wait()
    assert fault.count == 2


def test_fault_when_waited_for_in_vain_then_says_how_often_it_acted() -> None:
    fault = Fault("broken", 2, lambda _: None)
    fault.act()
    with pytest.raises(TimeoutError, match=r"broken has acted 1 of 2 times after 0.01 s"):
        fault.wait(0.01)


@pytest.mark.parametrize("times", [0, -1])
def test_fault_when_it_could_never_act_then_refused(times: int) -> None:
    with pytest.raises(ValueError, match=f"times={times}: a fault acts at least once"):
        Fault("broken", times, lambda _: None)
