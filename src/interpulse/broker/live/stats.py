"""Counters and rates as Pulsar's statistics show them."""

from __future__ import annotations


class TrafficMeter:
    """A counter of messages, entries and bytes, with their rates in the last full period."""

    __slots__ = ("_bytes_before", "_messages_before", "byte_rate", "bytes", "entries", "message_rate", "messages")

    def __init__(self) -> None:
        self.messages = self.entries = self.bytes = 0
        self.message_rate = self.byte_rate = 0.0
        self._messages_before = self._bytes_before = 0

    def tick(self, seconds: float) -> None:
        """End a period of this length."""
        moved = self.messages != self._messages_before or self.bytes != self._bytes_before
        if not moved and not self.message_rate and not self.byte_rate:
            return  # most topics are idle most of the time
        self.message_rate = (self.messages - self._messages_before) / seconds
        self.byte_rate = (self.bytes - self._bytes_before) / seconds
        self._messages_before, self._bytes_before = self.messages, self.bytes

    def absorb(self, other: TrafficMeter) -> None:
        """Add the counts of a meter that ends."""
        self.messages += other.messages
        self.entries += other.entries
        self.bytes += other.bytes
        self._messages_before += other._messages_before
        self._bytes_before += other._bytes_before

    @property
    def average_bytes(self) -> float:
        """Bytes per message in the last full period."""
        return self.byte_rate / self.message_rate if self.message_rate else 0.0


def sum_of(*meters: TrafficMeter) -> TrafficMeter:
    """Return the sum of counts and rates."""
    total = TrafficMeter()
    for meter in meters:
        total.absorb(meter)
        total.message_rate += meter.message_rate
        total.byte_rate += meter.byte_rate
    return total
