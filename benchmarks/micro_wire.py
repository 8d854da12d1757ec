"""What the binary protocol costs per message, in microseconds; runs by itself.

python benchmarks/micro_wire.py
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry, verify_checksum
from interpulse.wire.frames import FrameDecoder

FRAMES = 1000
ROUNDS = 20
METADATA = pb.MessageMetadata(producer_name="standalone-0-17", sequence_id=70_000, publish_time=1_795_250_000_000)


def main() -> None:
    for payload_bytes in (100, 1000, 100_000):
        entry = build_entry(METADATA.SerializeToString(), bytes(payload_bytes))
        send = commands.send_head(1, 70_000, len(entry)) + entry
        sends = send * (FRAMES if payload_bytes < 10_000 else 40)
        count = len(sends) // len(send)
        report(f"SEND in, {payload_bytes} bytes, checksum verified", count, lambda data=sends: receive(data))
        report(f"entry built, {payload_bytes} bytes", 1, lambda size=payload_bytes: build(size))
        report(f"entry parsed, {payload_bytes} bytes", 1, lambda data=entry: parse_entry(data))
    report("SEND_RECEIPT out", 1, lambda: commands.send_receipt(1, 70_000, 0, 12, 40_000))
    report("head of MESSAGE out", 1, lambda: commands.message_head(1, 12, 40_000, 100))
    report("head of SEND out", 1, lambda: commands.send_head(1, 70_000, 100))
    report("ACK of one id out", 1, lambda: commands.ack_one(1, 12, 40_000))
    acks = commands.ack_one(1, 12, 40_000) * FRAMES
    report("ACK in", FRAMES, lambda: receive_commands(acks))


def receive(data: bytes) -> None:
    for frame in FrameDecoder().feed(data):
        if frame.entry is None or not verify_checksum(frame.entry):
            raise SystemExit("the frame did not survive")


def receive_commands(data: bytes) -> None:
    FrameDecoder().feed(data)


def build(payload_bytes: int) -> bytes:
    return build_entry(METADATA.SerializeToString(), bytes(payload_bytes))


def report(what: str, count: int, work: Callable[[], object]) -> None:
    """The best of several rounds, per message."""
    number = 1 if count > 1 else 2000
    best = min(timeit.repeat(work, number=number, repeat=ROUNDS)) / number / count
    sys.stdout.write(f"{what:45} {best * 1e6:8.2f} us\n")


if __name__ == "__main__":
    main()
