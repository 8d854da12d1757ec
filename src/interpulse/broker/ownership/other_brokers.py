"""What this broker asks other brokers of its cluster to do, over their admin API, as itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.own_access import OwnAccess, as_this_broker
from interpulse.broker.ownership.ownership import Bundle
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.client.transport.http_errors import Kind
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.brokers import BundleLock, ListenerAddresses, address_for
from interpulse.model.errors import Conflict, MetadataError, ServiceNotReady
from interpulse.model.names import NON_PERSISTENT, NamespaceName, TopicName
from interpulse.rules.bundles import bundle_hash
from interpulse.rules.lookup import LookupTarget
from interpulse.storage.api import Delete, MetadataStore, Put

__all__ = ["OtherBrokers"]

_NAMES_TRIED_MAX = 1_000_000
_ASKED_AT_ONCE = 16


class OtherBrokers:
    """See the module. `close` ends the connections."""

    def __init__(self, store: MetadataStore, ownership: SharedOwnership, access: OwnAccess) -> None:
        """``access`` is what this broker authenticates with."""
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
        kind: Kind,
        query: Mapping[str, object] | None = None,
        body: object = None,
    ) -> Any:
        """The decoded answer of the broker there; raises what it refuses, ServiceNotReady without an address for us,
        OwnCredentialsRefused if it does not let this broker in."""
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
            return await session.request(method, path, kind=kind, read=_as_it_is, query=query, body=body)

    async def _is_registered(self, root: str) -> bool:
        """Return True for a registered broker: only those get this broker's token.

        Source: docs/reference/cluster-protocol.md#redirects.
        """
        registered = [report.broker.addresses for report in (await self.ownership.brokers.view()).reports.values()]
        return root in {url.rstrip("/") for each in registered for url in (each.web_url, each.web_url_tls)}

    async def owners(self, bundles: list[Bundle]) -> dict[Bundle, BundleLock]:
        """The locks of those of these bundles that have an owner."""
        found = await self._store.get_many([keys.bundle_lock(*bundle) for bundle in bundles])
        owners = {}
        for bundle in bundles:
            stored = found.get(key := keys.bundle_lock(*bundle))
            if stored is None:
                continue
            try:
                owners[bundle] = BundleLock.load(stored.value)
            except ValueError as error:
                raise MetadataError(f"The lock {key} cannot be understood: {error}") from error
        return owners

    async def loaded_topics(
        self, namespace: NamespaceName, bundle: str | None = None, *, include_system: bool = False
    ) -> list[TopicName]:
        """The non-persistent topics of a namespace, or of one bundle, that are loaded at others: those brokers say."""
        bundles = [each for each in await self.ownership.bundles_of(namespace) if bundle in (None, each.range)]
        permits = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def ask(owned: Bundle, owner: BundleLock) -> Any:
            async with permits:
                return await self.ask(
                    owner.broker.addresses,
                    "GET",
                    f"/admin/v2/non-persistent/{namespace}",
                    kind="namespace",
                    query={"bundle": owned.range, "includeSystemTopic": include_system},
                )

        owners = (await self.owners(bundles)).items()
        lists = await asyncio.gather(*(ask(*each) for each in owners if each[1].broker.broker_id != self.own_id))
        return [TopicName.parse(name) for names in lists for name in names]

    async def unload(self, bundle: Bundle, owner: BundleLock) -> None:
        """The owner gives the bundle away."""
        path = f"/admin/v2/namespaces/{bundle.namespace}/{bundle.range}/unload"
        await self.ask(owner.broker.addresses, "PUT", path, kind="namespace")

    @asynccontextmanager
    async def collected(self, namespace: NamespaceName) -> AsyncIterator[None]:
        """Own all bundles of a namespace: their owners give them away. Raises Conflict if one goes elsewhere.

        Afterwards they stay here, but those that isolation policies keep from this broker are given away.
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
        """The addresses of a broker; raises Conflict if it is not there."""
        reports = (await self.ownership.brokers.view()).reports
        if broker_id not in reports:
            raise Conflict(
                f"Not allowed unload namespace bundle to inactive destination broker {broker_id}: there is "
                f"{', '.join(sorted(reports))}"
            )
        return reports[broker_id].broker.addresses

    async def move(self, bundle: Bundle, broker_id: str) -> None:
        """Give a bundle of this broker to that one, and to no other.

        Raises Conflict if that one is not there, or may not have the bundle.
        """
        destination = await self.check_registered(broker_id)
        reason = await self.ownership.exclusion(bundle.namespace, broker_id)
        if reason is not None:
            raise Conflict(f"Namespace bundle {bundle} is not unloaded for {broker_id}: {reason}")
        key = keys.bundle_destination(*bundle)
        await self._store.commit([Put(key, broker_id.encode(), ephemeral=True)])
        try:
            await self.ownership.release(bundle)
            path = f"/lookup/v2/topic/{_topic_in(bundle).rest_path}"
            await self.ask(destination, "GET", path, kind="topic", query={"authoritative": True})
        finally:
            await self._store.commit([Delete(key)])


def _as_it_is(body: Any) -> Any:
    return body


def _topic_in(bundle: Bundle) -> TopicName:
    """A name that lies in the bundle; nothing is created of it."""
    lower, upper = (int(end, 16) for end in bundle.range.split("_"))
    for number in range(_NAMES_TRIED_MAX):
        topic = TopicName.of(NON_PERSISTENT, bundle.namespace.tenant, bundle.namespace.local, f"handed-over-{number}")
        if lower <= bundle_hash(topic) < upper or bundle_hash(topic) == upper == 0xFFFFFFFF:
            return topic
    raise Conflict(
        f"Namespace bundle {bundle} is too small to be handed over by a lookup: unload it without destination"
    )
