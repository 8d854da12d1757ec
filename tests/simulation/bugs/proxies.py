"""Bugs of a lookup proxy, which S5 and `proxied` must find."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from interpulse.proxy.binary_server import Greeting
from interpulse.proxy.lookup.lookup_session import Answers
from interpulse.proxy.lookup.questions import Questions
from interpulse.proxy.relay import Relay, RelayEnd

_LARGE_BYTES: Final = 500
_LATE_SECONDS: Final = 0.005


def owner_kept_past_a_move() -> None:
    """141: a proxy answers each lookup as it did the first time, although the topic has moved."""
    find = Questions.find
    owners: dict[str, Any] = {}

    async def kept(self: Questions, lookup: Any, connection: Any = None) -> Any:
        if lookup.topic not in owners:
            owners[lookup.topic] = await find(self, lookup, connection)
        return owners[lookup.topic]

    Questions.find = kept  # type: ignore[method-assign]


def permit_kept_by_a_client_that_is_gone() -> None:
    """142: a question keeps its permit when its client goes away before the answer."""
    answer = Answers.answer

    async def leaking(self: Answers, *question: Any) -> bytes:
        try:
            return await answer(self, *question)
        except asyncio.CancelledError:
            self._permits.taken += 1
            raise

    Answers.answer = leaking  # type: ignore[assignment, method-assign]


def client_counted_after_its_broker_went() -> None:
    """143: a client whose broker ends the connection stays counted.

    Brokers restart, until the limit of connections is reached and the proxy admits no one.
    """

    def end_lost(self: Relay, end: RelayEnd, exc: Exception | None) -> None:
        if not self._ends:
            return
        self._ends -= 1
        if self._ends:
            end.other.close()
            return
        self._timer.cancel()
        if end is self.broker:
            self._on_lost()

    Relay.end_lost = end_lost  # type: ignore[method-assign]


def large_reads_overtaken() -> None:
    """144: what the proxy reads at once is written later if it is large, and smaller reads overtake it.

    A batch of a thousand bytes is passed on behind the message that was sent after it.
    """

    def data_received(self: RelayEnd, data: bytes) -> None:
        self._relay.moved(len(data))
        if len(data) > _LARGE_BYTES:
            asyncio.get_running_loop().call_later(_LATE_SECONDS, self.other.write, data)
        else:
            self.other.write(data)

    RelayEnd.data_received = data_received  # type: ignore[method-assign]


def connections_kept_for_questions() -> None:
    """145: the connection on which a client's questions were asked stays open when the client is gone.

    Clients come and go, until the broker has as many connections as it accepts.
    """

    async def release(self: Greeting) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    Greeting.release = release  # type: ignore[method-assign]
