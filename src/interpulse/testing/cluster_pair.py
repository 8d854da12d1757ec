"""Two clusters that know each other, for tests of code that compares, provisions and enables replication."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from interpulse.model.clusters import ClusterData
from interpulse.serving.settings import ConfigError
from interpulse.testing.broker import InProcessBroker
from interpulse.testing.settings import Setting

_NAMES: Final = ("east", "west")
_TENANT: Final = "public"


class ClusterPair:
    """Two brokers, the clusters ``east`` and ``west``, each registered at the other.

    The tenant ``public`` is allowed on both, so ``set-clusters`` works immediately for ``public/default``, with
    comparison, preview, adjustment, and the creation of topics on the other side. **Messages are not copied**: the
    Spark job that copies them is off (``replicationJob=external``).
    """

    def __init__(self, directory: Path, settings: Mapping[str, Setting] | None = None) -> None:
        """Store data below ``directory`` and apply ``settings`` to both brokers.

        Raises ConfigError for ``clusterName``.
        """
        given = settings or {}
        if "clusterName" in given:
            raise ConfigError(f"clusterName={given['clusterName']}: the clusters of a pair are {' and '.join(_NAMES)}")
        self.east, self.west = (
            InProcessBroker(directory / name, {"replicationJob": "external", **given, "clusterName": name})
            for name in _NAMES
        )
        self._running = ExitStack()

    def start(self) -> Self:
        """Return when both brokers are ready and registered at each other."""
        with ExitStack() as running:
            for broker in (self.east, self.west):
                running.enter_context(broker)
            self._introduce()
            self._running = running.pop_all()
        return self

    def stop(self) -> None:
        """Stop both brokers."""
        self._running.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _introduce(self) -> None:
        for broker, name, other in ((self.east, "west", self.west), (self.west, "east", self.east)):
            address = ClusterData(service_url=other.web_url, broker_service_url=other.service_url)
            if name in broker.admin.clusters.list():  # restarted, on other ports
                broker.admin.clusters.update(name, address)
            else:
                broker.admin.clusters.create(name, address)
            tenant = broker.admin.tenants.get(_TENANT)
            broker.admin.tenants.update(_TENANT, replace(tenant, allowed_clusters=_NAMES))
