"""An open load against answers that the test chooses, and the due times of its messages."""

import asyncio
import os
import signal

import pytest

from interpulse.cli.perf import driver as module
from interpulse.cli.perf.driver import Driver, Load, Schedule
from interpulse.cli.perf.latencies import Latencies
from interpulse.cli.perf.measured_run import PRODUCED, MeasuredRun
from interpulse.cli.support.running import CommandFailed
from interpulse.model.errors import NotConnected


def new_run() -> MeasuredRun:
    return MeasuredRun(PRODUCED, Latencies(value_max=10**9, units_per_ms=1000), report_interval_s=10, as_json=False)


def load(**changes: float) -> Load:
    return Load(**({"rate": 0, "count_max": 0, "duration_s": 0, "warmup_s": 0, "outstanding_max": 10,  # type: ignore[arg-type]
                    "ends_on_failure": False} | changes))  # fmt: skip


async def test_load_when_nothing_is_answered_then_ends_when_its_time_is_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_ANSWERS_WAIT_S", 0.01)
    begun = []

    async def begin(index: int, intended: float) -> None:
        begun.append(index)

    run = new_run()
    await Driver(run, load(rate=1000, duration_s=0.5, outstanding_max=3)).drive(begin)
    assert begun == [0, 1, 2]
    assert "no answer came for the last ones" in capsys.readouterr().err
    assert run.messages == 0


async def test_run_when_answers_stay_away_then_says_how_many_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_ANSWERS_WAIT_S", 0.01)
    run = new_run()
    driver = Driver(run, load(count_max=5))

    async def begin(index: int, intended: float) -> None:
        if index < 2:
            driver.answered(1, intended)

    with pytest.raises(CommandFailed, match="0 failed, 3 had no answer") as raised:
        await run.follow(driver.drive(begin))
    driver.failed(NotConnected("the client is closed"))  # as what is pending when a client closes
    told = capsys.readouterr()
    assert raised.value.exit_code == 1
    assert "--- 2 records sent --- " in told.out
    assert "--- 0 failed --- 3 without an answer\n" in told.out
    assert "failed: " not in told.err


async def test_run_when_messages_fail_then_fails(capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run()
    driver = Driver(run, load(count_max=3))

    async def begin(index: int, intended: float) -> None:
        driver.failed(NotConnected("away"))

    with pytest.raises(CommandFailed, match="3 failed, 0 had no answer"):
        await run.follow(driver.drive(begin))
    assert "--- 3 failed\n" in capsys.readouterr().out


async def test_run_when_interrupted_then_is_no_failure_whatever_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run()
    driver = Driver(run, load(count_max=2))

    async def begin(index: int, intended: float) -> None:
        if index == 0:
            driver.failed(NotConnected("away"))
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    await asyncio.create_task(run.follow(driver.drive(begin)))
    assert "--- 1 failed --- 1 without an answer\n" in capsys.readouterr().out


async def test_latency_after_a_late_answer_counts_from_the_due_time() -> None:
    run = new_run()
    driver = Driver(run, load(rate=100, count_max=5, outstanding_max=1))
    loop = asyncio.get_running_loop()

    async def begin(index: int, intended: float) -> None:
        loop.call_later(0.2 if index == 0 else 0, driver.answered, 1, intended)

    await driver.drive(begin)
    latencies = run._latencies.take(0, 1)
    assert (run.messages, latencies.count) == (5, 5)
    assert latencies.p50 >= 150  # the others were due 10 to 40 ms after the first, which hung for 200


async def test_load_when_one_fails_and_it_is_to_end_then_raises() -> None:
    run = new_run()
    driver = Driver(run, load(count_max=3, ends_on_failure=True))

    async def begin(index: int, intended: float) -> None:
        driver.failed(NotConnected("away"))

    with pytest.raises(CommandFailed, match="--exit-on-failure ends the run then"):
        await driver.drive(begin)


async def test_terminated_run_prints_its_summary_and_resets_the_signal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = new_run()

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    await asyncio.create_task(run.follow(work()))
    assert "0 records sent" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        (Schedule(10, 100.0), 99.9, 0),
        (Schedule(10, 100.0), 100.0, 1),
        (Schedule(10, 100.0), 100.25, 3),
        (Schedule(10, 100.0, count_max=2), 105.0, 2),
        (Schedule(10, 100.0, duration_s=1), 101.0, 10),
        (Schedule(10, 100.0, duration_s=0.95), 200.0, 10),
        (Schedule(10, 100.0, count_max=3, duration_s=1), 200.0, 3),
        (Schedule(0, 100.0, count_max=7), 100.0, 7),
    ],
)
def test_messages_when_time_passes_then_are_due_by_their_number(schedule: Schedule, now: float, due: int) -> None:
    assert schedule.due(now) == due


def test_time_of_a_message_when_others_are_late_then_does_not_move() -> None:
    schedule = Schedule(4, 100.0)
    assert [schedule.intended(index, 500.0) for index in range(3)] == [100.0, 100.25, 100.5]
    assert Schedule(0, 100.0).intended(9, 500.0) == 500.0


def test_schedule_when_enough_or_late_enough_then_is_over() -> None:
    assert Schedule(10, 0.0, count_max=2).is_over(2, 0.1)
    assert not Schedule(10, 0.0, count_max=2).is_over(1, 99.0)
    assert Schedule(10, 0.0, duration_s=1).is_over(3, 1.0)
    assert Schedule(10, 0.0, duration_s=1).missed(3, 1.0) == 7
    assert not Schedule(10, 0.0).is_over(10**9, 1e9)
