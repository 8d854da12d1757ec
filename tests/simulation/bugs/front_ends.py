"""Bugs of lookups, of the admin API and its client, and of an orderly stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from interpulse.broker import app
from interpulse.broker.binary import handlers
from interpulse.broker.binary.transport.context import CommandConnection
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.topic_reading import AnswerCache
from interpulse.client.transport.http_session import HttpSession
from interpulse.wire import pulsar_api_pb2 as pb


def answers_kept_after_a_change() -> None:
    """24: a cached answer is given although the metadata changed."""

    def find(self: AnswerCache[Any], name: str) -> Any:
        cached = self._answers.get(name)
        return None if cached is None else cached[0]

    AnswerCache.find = find  # type: ignore[method-assign]


def permit_leaked_by_a_batch_lookup() -> None:
    """25: a batch lookup gives its permit back with the answer, which a lost connection does not get."""
    field, answer, check = handlers.AWAITING[pb.BaseCommand.BATCH_LOOKUP]

    async def leaking(connection: CommandConnection, request: Any) -> None:
        await answer(connection, request)
        if connection.lost:
            connection.context.permits.taken += 1

    handlers.AWAITING[pb.BaseCommand.BATCH_LOOKUP] = (field, leaking, check)


def cursors_not_stored_at_the_stop() -> None:
    """121: an orderly stop leaves the acknowledgements since the last flush behind."""
    flush = SubscriptionSet.flush

    async def forgetful(self: SubscriptionSet, more: Mapping[str, Any], *, last: bool = False) -> None:
        if not last:
            await flush(self, more)

    SubscriptionSet.flush = forgetful  # type: ignore[method-assign]


def stop_without_a_limit() -> None:
    """122: an orderly stop takes as long as its disk does."""
    app._STOP_SECONDS_MAX = 600.0  # type: ignore[misc]


def change_answered_before_it_is_stored() -> None:
    """123: the policies of a namespace are stored behind the answer."""
    update = Namespaces.update_policies
    tasks: list[asyncio.Task[Any]] = []

    async def hasty(self: Namespaces, *arguments: Any) -> Any:
        tasks.append(asyncio.create_task(update(self, *arguments)))
        await asyncio.sleep(0)

    Namespaces.update_policies = hasty  # type: ignore[assignment, method-assign]


def connections_left_by_a_closed_client() -> None:
    """124: a closed HTTP session keeps its connections."""

    async def close(self: HttpSession) -> None:
        self._closed = True

    HttpSession.close = close  # type: ignore[method-assign]


def skip_answered_before_it_is_stored() -> None:
    """125: skipped messages come back after a crash."""

    async def settled(self: Subscription) -> None:
        if self.promises is not None:
            await self.promises.settled()

    Subscription.settled = settled  # type: ignore[method-assign]


def changes_sent_twice() -> None:
    """126: the HTTP library sends PUT and DELETE again when a connection is lost."""
    opened: Callable[[HttpSession], Any] = HttpSession._open

    def sending_again(self: HttpSession) -> Any:
        session = opened(self)
        session._retry_connection = True
        return session

    HttpSession._open = sending_again  # type: ignore[method-assign]
