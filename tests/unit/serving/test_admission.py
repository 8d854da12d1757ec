"""Who is let in: a table of connections that come and go, and what keeps one more out."""

import resource

import pytest

from interpulse.serving.admission import ConnectionQuota, Full, sockets_max

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
