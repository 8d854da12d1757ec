"""Two clusters inside a test, each a broker in a thread of its own, with copies in both directions on request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from interpulse.client.portal import Portal
from interpulse.model.clusters import ClusterData
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.serving.settings import ConfigError
from interpulse.testing.broker import InProcessBroker, Setting

_NAMES: Final = ("east", "west")
_TENANT: Final = "public"
_INTERVAL_MS: Final = 50
_LOOK_S: Final = 0.02
_REPLICATING: Final = "REPLICATING"


class ClusterPair:
    """Two brokers, the clusters ``east`` and ``west``, each registered at the other.

    The tenant ``public`` is allowed on both, so ``set-clusters`` works immediately for ``public/default``, with
    comparison, preview, adjustment, and the creation of topics on the other side.

    With ``replicates=True`` the pair copies messages and acknowledgements as the replication job does, in both
    directions and within fractions of a second, where policies ask for it. The code is that of the job, and neither
    Java nor Spark is needed. Without it **messages are not copied**.

    :meth:`lose`, :meth:`suspend` and :meth:`stop_copying` are faults of a whole site. Use the methods from blocking
    code; in a coroutine, run them in a thread.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, Setting] | None = None,
        *,
        replicates: bool = False,
        interval_ms: int = _INTERVAL_MS,
    ) -> None:
        """Store data below ``directory`` and apply ``settings`` to both brokers.

        ``interval_ms`` is the period in which acknowledgements are exchanged. Raises ConfigError for ``clusterName``.
        """
        given = settings or {}
        if "clusterName" in given:
            raise ConfigError(f"clusterName={given['clusterName']}: the clusters of a pair are {' and '.join(_NAMES)}")
        self.east, self.west = (
            InProcessBroker(directory / name, {"replicationJob": "external", **given, "clusterName": name})
            for name in _NAMES
        )
        self.brokers: Mapping[str, InProcessBroker] = dict(zip(_NAMES, (self.east, self.west), strict=True))
        """Both brokers by the names of their clusters."""
        self._directory = directory
        self._replicates = replicates
        self._interval_ms = interval_ms
        self._copies: _Copies | None = None
        self._running = ExitStack()

    def start(self) -> Self:
        """Return when both brokers are ready and registered at each other."""
        with ExitStack() as running:
            for broker in (self.east, self.west):
                running.enter_context(broker)
            self._introduce()
            if self._replicates:
                self._copies = _Copies(self._directory, self._interval_ms)
                running.callback(self._copies.close)
                for name in _NAMES:
                    self._copies.start(self.address(name))
            self._running = running.pop_all()
        return self

    def stop(self) -> None:
        """Stop copying and both brokers."""
        for broker in self.brokers.values():
            broker.resume()
        self._running.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def address(self, site: str) -> ClusterAddress:
        """Return the addresses of a cluster, from which clients are made. Raise ValueError for another name."""
        broker = self._broker(site)
        return ClusterAddress(cluster=site, service_url=broker.service_url, admin_url=broker.web_url)

    def lose(self, site: str) -> None:
        """Stop serving a cluster as if it was killed: connections break, and new ones are refused.

        Messages and acknowledgements that it has taken are kept for :meth:`return_`. Raise ValueError for another name.
        """
        self._broker(site).lose()

    def return_(self, site: str) -> None:
        """Start a lost cluster again on the same ports with the same data."""
        self._broker(site).start_again()

    def suspend(self, site: str) -> None:
        """Stop a cluster as SIGSTOP does: connections stay open, and nothing is answered until :meth:`resume`."""
        self._broker(site).suspend()

    def resume(self, site: str) -> None:
        """Go on after :meth:`suspend`."""
        self._broker(site).resume()

    def stop_copying(self, source: str) -> None:
        """Stop copying from a cluster to the other one, and the exchange of acknowledgements by that job."""
        self._copying(source).stop(source)

    def start_copying(self, source: str) -> None:
        """Copy from a cluster again, from where copying has stopped."""
        self._copying(source).start(self.address(source))

    def wait_until_copied(self, *topics: str, timeout_s: float = 60) -> None:
        """Return when each of these topics is copied in both directions.

        Both clusters have them and their namespaces de-duplicate from then on: until then, policies and topics change.
        Raise TimeoutError that names what is not copied after ``timeout_s`` seconds, and why.
        """
        deadline = time.monotonic() + timeout_s
        while missing := next(self._not_copied(topics), ""):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout_s:g} s {missing}")
            time.sleep(_LOOK_S)

    def _not_copied(self, topics: tuple[str, ...]) -> Iterator[str]:
        """Yield sentences about the topics that are not copied, by the reports of the copiers."""
        for site in _NAMES:
            self._copying(site)
            admin = self.brokers[site].admin
            for topic in map(TopicName.parse, topics):
                records = admin.namespaces.replication_status(topic.namespace_name)
                states = [each["state"] for each in records if TopicName.parse(each["topic"]).base == topic]
                if set(states) != {_REPLICATING}:
                    yield f"{topic} of {site} is not copied: {', '.join(states) or 'no policy asks for it'}"

    def _copying(self, source: str) -> _Copies:
        self._broker(source)
        if self._copies is None:
            raise ValueError("this pair does not copy: create it with replicates=True, and start it")
        return self._copies

    def _broker(self, site: str) -> InProcessBroker:
        if site not in self.brokers:
            raise ValueError(f"{site!r} is no cluster of the pair: use {' or '.join(_NAMES)}")
        return self.brokers[site]

    def _introduce(self) -> None:
        for broker, name, other in ((self.east, "west", self.west), (self.west, "east", self.east)):
            address = ClusterData(service_url=other.web_url, broker_service_url=other.service_url)
            if name in broker.admin.clusters.list():  # restarted, on other ports
                broker.admin.clusters.update(name, address)
            else:
                broker.admin.clusters.create(name, address)
            tenant = broker.admin.tenants.get(_TENANT)
            broker.admin.tenants.update(_TENANT, replace(tenant, allowed_clusters=_NAMES))


class _Copies:
    """Copiers of both directions, in one thread."""

    def __init__(self, directory: Path, interval_ms: int) -> None:
        self._directory = directory
        self._interval_ms = interval_ms
        self._portal = Portal("copies")
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, source: ClusterAddress) -> None:
        from interpulse.testing.copier import Copier

        copier = Copier(self._directory / f"copies-from-{source.cluster}", source, interval_ms=self._interval_ms)

        def begin() -> None:
            if source.cluster not in self._tasks:
                self._tasks[source.cluster] = asyncio.create_task(copier.run())

        self._portal.run(begin)

    def stop(self, source: str) -> None:
        """Return when the copier has ended. Raise what ended it before."""

        async def end() -> None:
            task = self._tasks.pop(source, None)
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

        self._portal.call(end)

    def close(self) -> None:
        """End both copiers and the thread."""
        with ExitStack() as closing:
            closing.callback(self._portal.close)
            for name in _NAMES:
                closing.callback(self.stop, name)
