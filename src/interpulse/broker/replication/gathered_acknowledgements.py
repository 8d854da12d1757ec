"""The acknowledgements of a namespace at all brokers of its cluster, gathered by the broker that is asked.

The token has a part for each broker that serves bundles of the namespace. The first broker with changes answers for
all. Calls to others that still wait go on, and the next question takes their answers: if they ended with every answer,
each change would leave a call behind that waits at another broker.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interpulse.broker.ownership.ownership import NO_OPTIONS
from interpulse.broker.replication.acknowledgement_feed import (
    SUBSCRIPTIONS_MAX,
    AcknowledgementFeed,
    Page,
    Question,
    State,
)
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import NamespaceName
from interpulse.model.operations import Lookups as LookupOperations
from interpulse.model.operations import Replication

if TYPE_CHECKING:
    from interpulse.broker.ownership.other_brokers import OtherBrokers

log = logging.getLogger(__name__)

_WAIT_SECONDS_MAX: Final = 20.0
"""The wait of one call to another broker, below the time-out of such calls."""
_UNUSED_SECONDS: Final = 60.0
"""The time for which an answer waits for the next question."""

_Answer = asyncio.Future[Page | PulsarError]
_Key = tuple[str, NamespaceName, bool]
"""A broker, and the namespace and kind of a question."""


class _Asked(NamedTuple):
    """A call to another broker."""

    since: str
    answer: _Answer

    @property
    def is_spent(self) -> bool:
        """True after an answer without changes: it says nothing about changes since then."""
        if not self.answer.done():
            return False
        result = self.answer.result()
        return isinstance(result, PulsarError) or not result.subscriptions


class GatheredAcknowledgements:
    """The pages of all brokers."""

    def __init__(
        self,
        feed: AcknowledgementFeed,
        bundles: Bundles,
        lookups: Lookups,
        own_id: str,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        others: OtherBrokers | None,
    ) -> None:
        """``spawn`` owns the calls to other brokers. Without ``others`` this broker is alone."""
        self.here = feed
        """The pages of this broker alone."""
        self._bundles = bundles
        self._lookups = lookups
        self._own_id = own_id
        self._spawn = spawn
        self._others = others
        self._asked: dict[_Key, _Asked] = {}

    async def page(self, question: Question, token: str) -> Page:
        """Return the subscriptions that changed since this token.

        Raise NamespaceNotFound, and the error of another broker if none has changes.
        """
        since = _parts(token)
        brokers = await self._brokers(question, since)
        since = {broker: since.get(broker, "") for broker in brokers}
        pages = await self._pages(question, brokers, since)
        return _joined(pages, since)

    # --- the brokers

    async def _brokers(self, question: Question, since: Mapping[str, str]) -> Mapping[str, ListenerAddresses | None]:
        """Return the brokers that serve the namespace, None for this one.

        For a first question, and after a broker left, bundles without a broker get one if they have subscriptions.
        """
        if self._others is None:
            return {self._own_id: None}
        brokers = await self._serving(question)
        if not since or not since.keys() <= brokers.keys():
            await self._place(question, self._others)
            brokers = await self._serving(question)
        return brokers or {self._own_id: None}

    async def _serving(self, question: Question) -> dict[str, ListenerAddresses | None]:
        elsewhere = await self._bundles.others_of(question.namespace)
        own = {self._own_id: None} if await self._bundles.served(question.namespace) else {}
        return own | {lock.broker.broker_id: lock.broker.addresses for lock in elsewhere.values()}

    async def _place(self, question: Question, others: OtherBrokers) -> None:
        """Look a topic of each bundle up, as clients do, so that a broker takes the bundle."""
        topics = await self.here.stored(question.namespace, marked=question.marked)
        for topic in await self._bundles.one_of_each(question.namespace, topics):
            try:
                target = await self._lookups.find(topic, NO_OPTIONS)
                if target.redirect:
                    path, query = LookupOperations.FIND.path_of(topic), {"authoritative": target.authoritative}
                    await others.ask(target, "GET", path, kind="topic", query=query)
            except PulsarError as error:
                log.warning("bundle not placed for its acknowledgements topic=%s error=%s", topic, error)

    # --- their answers

    async def _pages(
        self, question: Question, brokers: Mapping[str, ListenerAddresses | None], since: dict[str, str]
    ) -> dict[str, Page]:
        """Return the pages of brokers with changes. Where there are none, ``since`` gets the new tokens."""
        ends = asyncio.get_running_loop().time() + question.wait_seconds
        pages: dict[str, Page] = {}
        failures: dict[str, PulsarError] = {}
        while not pages and (silent := brokers.keys() - failures.keys()):
            left = max(0.0, ends - asyncio.get_running_loop().time())
            asked = {broker: self._ask(broker, brokers[broker], question, since[broker], left) for broker in silent}
            for broker, answer in (await _first_done(asked, all_of_them=not left)).items():
                if isinstance(answer, PulsarError):
                    failures[broker] = answer
                elif answer.subscriptions:
                    pages[broker] = answer
                else:
                    since[broker] = answer.token
            if not left:
                break
        if not pages and failures:
            raise next(iter(failures.values()))
        return pages

    def _ask(
        self, broker: str, addresses: ListenerAddresses | None, question: Question, since: str, wait_seconds: float
    ) -> _Answer:
        """Ask a broker. A call for the same that waits there, or ended with changes, is used again."""
        question = question._replace(wait_seconds=min(wait_seconds, _WAIT_SECONDS_MAX))
        key = broker, question.namespace, question.marked
        before = self._asked.get(key)
        if wait_seconds and before is not None and before.since == since and not before.is_spent:
            return before.answer
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._spawn(self._answer(answer, addresses, question, since))
        if wait_seconds:
            asked = self._asked[key] = _Asked(since, answer)
            answer.add_done_callback(lambda _: self._forget_later(key, asked))
        return answer

    async def _answer(
        self, answer: _Answer, addresses: ListenerAddresses | None, question: Question, since: str
    ) -> None:
        result: Page | PulsarError = ServiceNotReady("The broker is shutting down")
        try:
            if addresses is None:
                result = await self.here.page(question, since)
            else:
                result = await self._asked_there(addresses, question, since)
        except PulsarError as error:
            result = error
        finally:
            answer.set_result(result)

    async def _asked_there(self, addresses: ListenerAddresses, question: Question, since: str) -> Page:
        assert self._others is not None, "only a cluster has other brokers"
        query = {
            "since": since,
            "wait": f"{question.wait_seconds:f}s",
            "all": not question.marked,
            "authoritative": True,
        }
        path = Replication.GET_ACKNOWLEDGEMENTS.path_of(question.namespace)
        page = await self._others.ask(addresses, "GET", path, kind="namespace", query=query)
        return Page(page["token"], page["subscriptions"], page["more"])

    def _forget_later(self, key: _Key, asked: _Asked) -> None:
        """Forget an answer that no question takes."""

        def forget() -> None:
            if self._asked.get(key) is asked:
                del self._asked[key]

        asyncio.get_running_loop().call_later(_UNUSED_SECONDS, forget)


async def _first_done(asked: Mapping[str, _Answer], *, all_of_them: bool) -> dict[str, Page | PulsarError]:
    """Return the answers that came, at least one."""
    wanted = asyncio.ALL_COMPLETED if all_of_them else asyncio.FIRST_COMPLETED
    await asyncio.wait(asked.values(), return_when=wanted)
    return {broker: answer.result() for broker, answer in asked.items() if answer.done()}


def _joined(pages: Mapping[str, Page], since: Mapping[str, str]) -> Page:
    """Return one page with as many of these as fit. The others come with the next one."""
    tokens, states, more = dict(since), list[State](), False
    for broker, page in pages.items():
        if states and len(states) + len(page.subscriptions) > SUBSCRIPTIONS_MAX:
            more = True
            continue
        states += page.subscriptions
        tokens[broker] = page.token
        more |= page.more
    return Page(_token(tokens), states, more)


def _token(parts: Mapping[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _parts(token: str) -> dict[str, str]:
    """Return the part of each broker; none for a token that is not one of ours."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError:
        return {}
    is_ours = isinstance(parts, dict) and all(isinstance(part, str) for part in parts.values())
    return parts if is_ours else {}
