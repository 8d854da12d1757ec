"""Requests of this broker to the other brokers of its cluster, over their admin API and with its own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.bundle_locks import lock_key, parsed_lock
from interpulse.broker.ownership.own_access import OwnAccess, as_this_broker
from interpulse.broker.ownership.ownership import Bundle
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.brokers import BundleLock, ListenerAddresses, address_for
from interpulse.model.errors import Conflict, PulsarError, ServiceNotReady
from interpulse.model.names import NON_PERSISTENT, NamespaceName, TopicName
from interpulse.model.operations import Lookups, Namespaces, Subject, Topics
from interpulse.rules.bundles import bundle_hash
from interpulse.rules.lookup import LookupTarget
from interpulse.storage.api import Delete, MetadataStore, Put

_NAMES_TRIED_MAX = 1_000_000
_ASKED_AT_ONCE = 16


class OtherBrokers:
    """Admin clients of the other brokers. Call `close` at the end."""

    def __init__(self, store: MetadataStore, ownership: SharedOwnership, access: OwnAccess) -> None:
        """Create the clients; ``access`` authenticates this broker."""
        self.ownership = ownership
        self._store = store
        self._access = access
        self._sessions: dict[str, HttpSession] = {}
        self._opened = AsyncExitStack()

    @property
    def own_id(self) -> str:
        return self.ownership.brokers.own.broker.broker_id

    async def close(self) -> None:
        await self._opened.aclose()

    async def ask(
        self,
        broker: ListenerAddresses | LookupTarget,
        method: str,
        path: str,
        *,
        kind: Subject,
        query: Mapping[str, object] | None = None,
        body: object = None,
    ) -> Any:
        """Return the decoded answer of another broker, or raise its refusal.

        Raises ServiceNotReady if the broker has no address that this one can use, and OwnCredentialsRefused if it does
        not accept this broker's credentials.
        """
        web_url = address_for(broker.web_url, broker.web_url_tls, tls=self._access.tls_preferred)
        if not web_url:
            raise ServiceNotReady(
                f"A broker at {broker.web_url} offers no web service inside TLS, which brokerClientTlsEnabled=true "
                "asks for: set webServicePortTls there"
            )
        session = self._sessions.get(web_url)
        if session is None:
            session = HttpSession(
                web_url, credentials=self._access.credentials, tls=self._access.tls, trusted=self._is_registered
            )
            self._sessions[web_url] = session
            self._opened.push_async_callback(session.close)
        with as_this_broker(f"ask {web_url}"):
            return await session.request(method, path, kind=kind, read=lambda body: body, query=query, body=body)

    async def ask_each(self, method: str, path: str, *, kind: Subject, doing: str) -> list[Any]:
        """Return the answers of all other registered brokers.

        All are asked before the first failure raises ServiceNotReady, with the words ``doing`` and the broker.
        """
        reports = (await self.ownership.brokers.view()).reports
        others = {broker_id: report for broker_id, report in reports.items() if broker_id != self.own_id}
        asked = (self.ask(report.broker.addresses, method, path, kind=kind) for report in others.values())
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for broker_id, answer in zip(others, answers, strict=True):
            if isinstance(answer, PulsarError):
                raise ServiceNotReady(f"{doing} by broker {broker_id}: {answer}; repeat the call") from answer
            if isinstance(answer, BaseException):
                raise answer
        return answers

    async def _is_registered(self, root: str) -> bool:
        """Return True for a registered broker: only those get this broker's token.

        Source: docs/reference/cluster-protocol.md#redirects.
        """
        registered = [report.broker.addresses for report in (await self.ownership.brokers.view()).reports.values()]
        return root in {
            url.rstrip("/") for addresses in registered for url in (addresses.web_url, addresses.web_url_tls)
        }

    async def owners(self, bundles: list[Bundle]) -> dict[Bundle, BundleLock]:
        """Return the locks of these bundles; bundles without an owner are left out."""
        locks = await self._store.get_many([lock_key(bundle) for bundle in bundles])
        return {bundle: parsed_lock(key, locks[key]) for bundle in bundles if (key := lock_key(bundle)) in locks}

    async def loaded_topics(
        self, namespace: NamespaceName, bundle: str | None = None, *, include_system: bool = False
    ) -> list[TopicName]:
        """Return the non-persistent topics of a namespace or bundle that other brokers have loaded."""
        bundles = [owned for owned in await self.ownership.bundles_of(namespace) if bundle in (None, owned.range)]
        permits = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def ask(owned: Bundle, owner: BundleLock) -> Any:
            async with permits:
                return await self.ask(
                    owner.broker.addresses,
                    "GET",
                    Topics.LIST.path_of(NON_PERSISTENT, namespace),
                    kind="namespace",
                    query={"bundle": owned.range, "includeSystemTopic": include_system},
                )

        owners = (await self.owners(bundles)).items()
        lists = await asyncio.gather(*(ask(*owner) for owner in owners if owner[1].broker.broker_id != self.own_id))
        return [TopicName.parse(name) for names in lists for name in names]

    async def unload(self, bundle: Bundle, owner: BundleLock) -> None:
        """Ask the owner to release the bundle."""
        path = Namespaces.UNLOAD_BUNDLE.path_of(bundle.namespace, bundle.range)
        await self.ask(owner.broker.addresses, "PUT", path, kind="namespace")

    @asynccontextmanager
    async def collected(self, namespace: NamespaceName) -> AsyncIterator[None]:
        """Own all bundles of a namespace within the context: their owners release them.

        Raises Conflict if another broker takes one. Afterwards this broker keeps the bundles, except those that
        isolation policies do not allow it.
        """
        try:
            for bundle in await self.ownership.bundles_of(namespace):
                await self._collect(bundle)
            yield
        finally:
            await self.ownership.release_excluded(namespace)

    async def _collect(self, bundle: Bundle) -> None:
        lock = (await self.owners([bundle])).get(bundle)
        if lock is not None and lock.broker.broker_id != self.own_id:
            await self.unload(bundle, lock)
        taken = await self.ownership.take(bundle, even_excluded=True)
        if taken.broker.broker_id != self.own_id:
            raise Conflict(f"Namespace bundle {bundle} was taken by {taken.broker.broker_id} meanwhile, try again")

    async def check_registered(self, broker_id: str) -> ListenerAddresses:
        """Return the addresses of a registered broker. Raise Conflict if it is not registered."""
        reports = (await self.ownership.brokers.view()).reports
        if broker_id not in reports:
            raise Conflict(
                f"Not allowed unload namespace bundle to inactive destination broker {broker_id}: there is "
                f"{', '.join(sorted(reports))}"
            )
        return reports[broker_id].broker.addresses

    async def move(self, bundle: Bundle, broker_id: str) -> None:
        """Release a bundle to that broker only. Raise Conflict if it is not registered or not allowed to have it."""
        destination = await self.check_registered(broker_id)
        reason = await self.ownership.exclusion(bundle.namespace, broker_id)
        if reason is not None:
            raise Conflict(f"Namespace bundle {bundle} is not unloaded for {broker_id}: {reason}")
        key = keys.bundle_destination(*bundle)
        await self._store.commit([Put(key, broker_id.encode(), ephemeral=True)])
        try:
            await self.ownership.release(bundle)
            path = Lookups.FIND.path_of(_topic_in(bundle))
            await self.ask(destination, "GET", path, kind="topic", query={"authoritative": True})
        finally:
            await self._store.commit([Delete(key)])


def _topic_in(bundle: Bundle) -> TopicName:
    """Return a topic name whose hash is in the bundle. The topic is not created."""
    lower, upper = (int(end, 16) for end in bundle.range.split("_"))
    for number in range(_NAMES_TRIED_MAX):
        topic = TopicName.of(NON_PERSISTENT, bundle.namespace.tenant, bundle.namespace.local, f"handed-over-{number}")
        if lower <= bundle_hash(topic) < upper or bundle_hash(topic) == upper == 0xFFFFFFFF:
            return topic
    raise Conflict(
        f"Namespace bundle {bundle} is too small to be handed over by a lookup: unload it without destination"
    )
