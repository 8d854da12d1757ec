"""What can be asked of faults, and what cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.testing import Faults
from interpulse.testing.faulty_handlers import COMMANDS, REFUSABLE, command_name, names_topic
from interpulse.wire import pulsar_api_pb2 as pb


@pytest.fixture
def faults() -> Faults:
    return Faults(lambda work: work())


REFUSED: dict[str, tuple[Callable[[Faults], Any], str]] = {
    "misspelt command": (lambda f: f.refuse("PRODUCERS", "ServiceNotReady"), "'PRODUCERS' is not a command that"),
    "its nearest": (lambda f: f.refuse("producer", "ServiceNotReady"), "; the nearest is PRODUCER$"),
    "of a broker": (lambda f: f.delay("SEND_RECEIPT", 1), "'SEND_RECEIPT' is not a command that a client sends"),
    "misspelt error": (lambda f: f.refuse("SEND", "PersistanceError"), "an error of the .*nearest is PersistenceError"),
    "class of ours": (lambda f: f.refuse("SEND", "TopicTerminated"), "the nearest is TopicTerminatedError"),
    "transactions": (lambda f: f.refuse("SEND", "InvalidTxnStatus"), "'InvalidTxnStatus' is not an error"),
    "no answer": (lambda f: f.refuse("FLOW", "UnknownError"), "FLOW has no answer, so it cannot be refused"),
    "no topic": (lambda f: f.delay("CONNECT", 1, topic="a"), "topic='a': CONNECT is about no topic"),
    "bad topic": (lambda f: f.delay("SEND", 1, topic="a/b"), "topic='a/b': "),
    "no delay": (lambda f: f.delay("SEND", 0), "seconds=0: must be more than 0"),
    "delay without end": (lambda f: f.delay("SEND", float("inf")), "seconds=inf: must be more than 0"),
    "never": (lambda f: f.lose_receipts(0), "times=0: a fault acts at least once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_fault_when_it_cannot_be_then_refused_with_the_nearest(faults: Faults, name: str) -> None:
    ask, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence):
        ask(faults)


def test_disk_when_full_already_then_refused(faults: Faults) -> None:
    with faults.disk_full(), pytest.raises(ValueError, match="the disk is full already"):
        faults.disk_full()
    faults.disk_full().end()


def test_faults_when_cleared_then_all_are_over(faults: Faults) -> None:
    on = [faults.refuse("PRODUCER", "UnknownError"), faults.delay("SEND", 1), faults.disk_full()]
    faults.clear()
    assert not any(fault.active for fault in on)


@pytest.mark.parametrize("kind", COMMANDS, ids=command_name)
def test_commands_when_listed_then_each_can_be_delayed_and_most_refused(faults: Faults, kind: int) -> None:
    name = command_name(kind)
    assert pb.BaseCommand.Type.Value(name) == kind
    assert pb.BaseCommand.DESCRIPTOR.fields_by_name[COMMANDS[kind]].message_type is not None
    faults.delay(name, 0.1, topic="t" if names_topic(kind) else None)
    if kind in REFUSABLE:
        faults.refuse(name, "ServiceNotReady")
    faults.clear()
