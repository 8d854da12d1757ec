"""Every command of the binary protocol says which permission it requires. Routes cannot be made without one."""

from __future__ import annotations

from interpulse.broker.binary.handlers import AWAITING, CHECKS
from interpulse.wire import pulsar_api_pb2 as pb


def test_command_when_it_is_handled_then_says_what_it_needs() -> None:
    assert {pb.BaseCommand.Type.Name(kind) for kind in AWAITING} == {pb.BaseCommand.Type.Name(kind) for kind in CHECKS}  # type: ignore[arg-type]
