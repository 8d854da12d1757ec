"""Limits of clients: connections, lookups, requests per second, and open files."""

from __future__ import annotations

import resource

import pytest

from interpulse.model.errors import TooManyRequests
from interpulse.serving.admission import (
    ConnectionQuota,
    Full,
    LookupPermits,
    RequestRate,
    raise_open_files,
    sockets_max,
)

HERE, THERE = "127.0.0.1", "127.0.0.2"


@pytest.mark.parametrize(
    ("connections_max", "per_address_max", "come", "outcome"),
    [
        pytest.param(0, 0, [HERE] * 5, [None] * 5, id="no limit"),
        pytest.param(2, 0, [HERE, THERE, HERE], [None, None, Full.TOTAL], id="total"),
        pytest.param(0, 1, [HERE, HERE, THERE], [None, Full.PER_ADDRESS, None], id="per address"),
        pytest.param(2, 2, [HERE, HERE, HERE], [None, None, Full.TOTAL], id="total is told first, as in Pulsar"),
        pytest.param(3, 1, [HERE, HERE, THERE], [None, Full.PER_ADDRESS, None], id="refused ones are not counted"),
    ],
)
def test_quota_when_connections_come_then_those_above_are_kept_out(
    connections_max: int, per_address_max: int, come: list[str], outcome: list[Full | None]
) -> None:
    quota = ConnectionQuota(connections_max, per_address_max)
    assert [quota.admit(address) for address in come] == outcome
    assert (quota.open, quota.refused) == (outcome.count(None), len(outcome) - outcome.count(None))


def test_quota_when_one_is_released_then_one_more_may_come() -> None:
    quota = ConnectionQuota(1, 1)
    assert quota.admit(HERE) is None
    assert quota.admit(HERE) is Full.TOTAL
    quota.release(HERE)
    assert quota.admit(HERE) is None


def test_quota_when_several_services_share_one_then_both_are_bounded_by_it() -> None:
    program = ConnectionQuota(2)
    binary, web = ConnectionQuota(within=program), ConnectionQuota(5, within=program)
    assert [binary.admit(HERE), web.admit(HERE), web.admit(HERE)] == [None, None, Full.TOTAL]
    binary.release(HERE)
    assert web.admit(HERE) is None
    assert (program.open, binary.open, web.open) == (2, 0, 2)


def test_quota_when_a_service_is_full_then_the_program_counts_nothing() -> None:
    program = ConnectionQuota(9)
    service = ConnectionQuota(1, within=program)
    assert [service.admit(HERE), service.admit(HERE)] == [None, Full.TOTAL]
    assert program.open == 1


@pytest.mark.parametrize(("files", "most"), [(1024, 768), (1, 1), (resource.RLIM_INFINITY, 0)])
def test_sockets_when_files_are_limited_then_the_log_keeps_a_quarter(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (files, files))
    assert sockets_max() == most


def test_permit_when_work_fails_then_given_back() -> None:
    permits = LookupPermits(lambda: 1)
    with pytest.raises(ZeroDivisionError), permits:
        raise ZeroDivisionError
    with permits:
        pass


def test_permit_when_limit_is_lowered_then_the_next_one_is_refused() -> None:
    limit = 2
    permits = LookupPermits(lambda: limit)
    with permits:
        limit = 1
        with pytest.raises(TooManyRequests, match="too many pending lookup requests"), permits:
            pass
        assert (permits.taken, permits.rejected) == (1, 1)
        limit = 2
        with permits:
            pass


@pytest.mark.parametrize(
    ("per_second", "times", "outcome"),
    [
        pytest.param(2, [0, 0, 0], [True, True, False], id="at the limit, and one above"),
        pytest.param(2, [0, 0, 0.5, 0.5], [True, True, True, False], id="half a second later there is one more"),
        pytest.param(2, [0, 0, 60, 60, 60], [True, True, True, True, False], id="nothing is saved up"),
        pytest.param(1.5, [0, 0, 1 / 3, 2 / 3], [True, False, True, False], id="fractions"),
    ],
)
def test_requests_when_they_come_then_those_above_the_rate_are_refused(
    per_second: float, times: list[float], outcome: list[bool]
) -> None:
    clock = iter([0.0, *times])
    rate = RequestRate(per_second, lambda: next(clock))
    assert [rate.take() for _ in times] == outcome


Limits = tuple[int, int]


class System:
    """A process with limits of its own."""

    def __init__(self, limits: Limits, most: int) -> None:
        self.limits = limits
        self._most = most

    def get(self, kind: int) -> Limits:
        assert kind == resource.RLIMIT_NOFILE
        return self.limits

    def set(self, kind: int, limits: Limits) -> None:
        assert kind == resource.RLIMIT_NOFILE
        if limits[0] > self._most:
            raise ValueError("current limit exceeds maximum limit")
        self.limits = limits


@pytest.mark.parametrize(
    ("soft", "hard", "most", "in_force", "warnings"),
    [
        (256, 4096, 4096, 4096, 0),
        (4096, 4096, 0, 4096, 0),
        (256, 4096, 1000, 256, 1),
    ],
)
def test_files_when_the_soft_limit_is_lower_then_it_is_raised_as_far_as_the_system_lets(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    soft: int,
    hard: int,
    most: int,
    in_force: int,
    warnings: int,
) -> None:
    system = System((soft, hard), most)
    monkeypatch.setattr(resource, "getrlimit", system.get)
    monkeypatch.setattr(resource, "setrlimit", system.set)
    assert raise_open_files() == in_force
    assert system.limits == (in_force, hard)
    assert len(caplog.records) == warnings
