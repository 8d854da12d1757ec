"""A table of shares that puts work in the wrong line sends the next change to the wrong place."""

from collections import Counter

import pytest

from benchmarks.shares import OTHER, SHARES, SYSTEM_CALLS, count_shares, share_of, table

LOOP = "Loop__Loop__run (loop.c:19903)"
HANDLE = "ClientConnection._handle (interpulse/broker/binary/transport/connection.py:301)"


@pytest.mark.parametrize(
    ("stack", "share"),
    [
        ([LOOP], "event loop"),
        ([LOOP, HANDLE], "glue"),
        ([LOOP, HANDLE, "PyUpb_Message_GetAttr (_message.abi3.so)", "0x7fad (libc.so.6)"], "protobuf"),
        ([LOOP, HANDLE, "FrameDecoder._cut (interpulse/wire/frames.py:143)"], "parse"),
        ([LOOP, "accept_entry (interpulse/wire/frames.py:337)", "unpack_from (_struct.c:1623)"], "parse"),
        ([LOOP, "send_receipt (interpulse/wire/commands.py:170)"], "frame building"),
        ([LOOP, "Sink.send (interpulse/broker/binary/transport/sinks.py:9)"], "frame building"),
        ([LOOP, "TopicLifecycle.partitions (interpulse/broker/topics/lifecycle.py:80)"], "metadata read"),
        ([LOOP, "SqliteStore.get (interpulse/storage/metadata/sqlite.py:80)"], "metadata read"),
        ([LOOP, HANDLE, "TopicLog.append (interpulse/storage/logs/topic_log.py:130)"], "log"),
        ([LOOP, HANDLE, "Topic.append (interpulse/broker/live/topic/topic.py:279)"], "live topic"),
        (
            [LOOP, "Output.flush (interpulse/broker/binary/transport/flow_control.py:67)", "write (libc.so.6)"],
            SYSTEM_CALLS,
        ),
        (
            [LOOP, "Output.flush (interpulse/broker/binary/transport/flow_control.py:67)", "write (loop.c:110189)"],
            "event loop",
        ),
        (["thread_run (libpython3.11.so.1.0)", "collect (gcmodule.c:5)"], OTHER),
        ([LOOP, "uv__io_poll (linux.c:1452)", "epoll_pwait (libc.so.6)"], None),
        (
            ["LogWriter._run (interpulse/storage/segments/writer.py:73)", "PyThread_acquire_lock_timed (libpython)"],
            None,
        ),
    ],
)
def test_share_when_a_stack_is_sampled_then_is_that_of_its_innermost_known_frame(
    stack: list[str], share: str | None
) -> None:
    assert share_of(stack) == share


def test_samples_when_stacks_repeat_then_add_up_and_waiting_is_left_out() -> None:
    lines = [f"{LOOP};{HANDLE} 3", f"{LOOP};{HANDLE};FrameDecoder._cut (interpulse/wire/frames.py:1) 2", f"{HANDLE} 1"]
    assert count_shares([*lines, f"{LOOP};epoll_pwait (libc.so.6) 50"]) == {"glue": 4, "parse": 2}


def test_table_when_two_scenarios_were_profiled_then_has_a_column_for_each() -> None:
    shares = {"raw publish": Counter({"glue": 3, "parse": 1}), "questions": Counter({"glue": 1})}
    lines = table(shares, {"raw publish": 5.8, "questions": 23.0}).splitlines()
    assert lines[0] == "| share | raw publish | questions |"
    assert "| glue | 75% | 100% |" in lines
    assert "| CPU, us each | 5.80 | 23.00 |" in lines
    assert len(lines) == 2 + len(SHARES) + 2
