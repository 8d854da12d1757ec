"""Fence of one topic: an exclusive producer that closes every other producer and keeps new ones out.

Apache Pulsar closes the producers of a topic when a producer opens with the access mode ExclusiveWithFencing, and
refuses others with ProducerBusy until it ends. The replicators of other clusters are producers too: they are shut out
like the rest, and come back by themselves afterwards. Source: PIP-68.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.registered_handlers import ProducerListener
from interpulse.clock import iso_time, now_ms
from interpulse.model.errors import PulsarError, TopicTerminated
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import ReceiptRun


@dataclass(frozen=True, slots=True)
class Gap:
    """Time in which a topic was open to other producers, in milliseconds since 1970.

    It begins when the holder notices the loss, or at the last look before the topic appeared. A broker may free the
    topic some seconds earlier, if the network loses the connection without closing it. Read the end position of the
    topic again after a gap.
    """

    topic: TopicName
    began_ms: int
    ended_ms: int | None
    """None while the gap lasts."""

    reason: str

    def __str__(self) -> str:
        end = "now" if self.ended_ms is None else iso_time(self.ended_ms)
        return f"{self.topic} was not fenced from {iso_time(self.began_ms)} to {end}: {self.reason}"


class Fence(ProducerListener):
    """Exclusive producer of one topic or partition, opened again after every loss. It sends nothing.

    Every opening asks for exclusive access again, so it also closes the producers that came during a gap.
    """

    def __init__(self, session: Session, topic: TopicName, name: str, clock: Callable[[], int] = now_ms) -> None:
        self.topic = topic
        self.gaps: list[Gap] = []
        """Gaps so far, in order; the last one may still last."""

        self.failure: PulsarError | None = None
        """Refusal that ended the last opening; None while the fence is open or opens again."""

        self._session = session
        self._name = name
        self._clock = clock
        self._id = session.next_id()
        self._openings = 0
        self._is_terminated = False
        self._handler = ConnectionHandler(session, topic, self, what="fence")

    @property
    def holds(self) -> bool:
        """True while the topic takes no producers: the fence is open, or the topic is terminated."""
        return self._is_terminated or self._handler.connection is not None

    @property
    def is_idle(self) -> bool:
        """True if the topic takes producers and nothing is being done about it: call :meth:`open`."""
        return not self.holds and not self._handler.is_reconnecting

    async def open(self) -> None:
        """Close all producers of the topic and keep new ones out. Raise the broker's refusal."""
        self.failure = None
        try:
            await self._handler.open(timeout_ms=self._session.config.operation_timeout_ms)
        except TopicTerminated:
            self._is_terminated = True
            self.end_gap()
        except PulsarError as error:
            self.failure = error
            raise

    async def close(self) -> None:
        """Let producers in again."""
        connection = await self._handler.stop()
        if connection is not None:
            await connection.producers.close(self._id)

    def begin_gap(self, reason: str, began_ms: int | None = None) -> None:
        """Record that the topic is open to producers, from now or from an earlier time on."""
        began_ms = self._clock() if began_ms is None else began_ms
        self.gaps.append(Gap(self.topic, began_ms, None, reason))

    def end_gap(self) -> None:
        """Record that the gap is over, if there is one."""
        if self.gaps and self.gaps[-1].ended_ms is None:
            self.gaps[-1] = replace(self.gaps[-1], ended_ms=self._clock())

    # ---- Called by the connection handler

    async def register(self, connection: Connection) -> None:
        """Open the exclusive producer on this connection. Raise the broker's refusal."""
        command = pb.CommandProducer(
            topic=str(self.topic),
            producer_id=self._id,
            producer_name=self._name,
            user_provided_producer_name=True,
            epoch=self._openings,
            producer_access_mode=pb.ExclusiveWithFencing,
        )
        self._openings += 1
        await connection.producers.open(self._id, self, command, holds=(self.topic, self._name))
        self._handler.on_connected(connection)
        self.end_gap()

    def on_failed(self, failure: PulsarError) -> None:
        """Record the refusal. The gap lasts until :meth:`open` succeeds."""
        self.failure = failure

    # ---- Called by the connection

    def on_disconnected(self, assigned_url: str | None) -> None:
        if self._handler.on_lost(assigned_url):
            self.begin_gap("the broker closed the fence, or its connection was lost")
            self._handler.reconnect(assigned_url)

    def on_redirected(self, service_url: str) -> None:
        """Stay at the cluster that is fenced: a loss of the connection follows."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        raise AssertionError("a fence sends nothing")

    def on_receipts(self, run: ReceiptRun) -> None:
        raise AssertionError("a fence sends nothing")

    def on_send_error(self, error: pb.CommandSendError) -> None:
        raise AssertionError("a fence sends nothing")
