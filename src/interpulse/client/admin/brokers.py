"""Admin calls for brokers and their configuration."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from interpulse.client.json_readers import each, ignored, names, record, string
from interpulse.client.transport.http_session import HttpSession

Names = list[str]

_CONFIGURATION = "/admin/v2/brokers/configuration"


class BrokersAdmin:
    """Brokers of the cluster and their configuration. All configuration values are text."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self, cluster: str | None = None) -> Names:
        """Return the active brokers of ``cluster``, by default of the cluster that is asked."""
        path = "/admin/v2/brokers" if cluster is None else f"/admin/v2/brokers/{quote(cluster, safe='')}"
        return await self._http.get(path, kind="cluster", read=names)

    async def version(self) -> str:
        """Return the Pulsar version that the broker implements. Interpulse appends its own version."""
        return await self._http.get("/admin/v2/brokers/version", kind="broker", read=string)

    async def leader(self) -> dict[str, Any]:
        """Return ``brokerId`` and ``serviceUrl`` of the broker that balances the load."""
        return await self._http.get("/admin/v2/brokers/leaderBroker", kind="broker", read=record)

    async def owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """Return the bundles that a broker ``host:port`` serves, each with the reason.

        Bundles have the form ``tenant/namespace/0x..._0x...``.
        """
        path = f"/admin/v2/brokers/{quote(cluster, safe='')}/{quote(broker, safe='')}/ownedNamespaces"
        return await self._http.get(path, kind="broker", read=each(record))

    async def check_backlog_quotas(self) -> None:
        """Compare backlogs with their quotas now instead of at the next periodic check."""
        await self._http.get("/admin/v2/brokers/backlog-quota-check", kind="broker", read=ignored)

    async def health(self, *, topic_version: str | None = None) -> str:
        """Return ``ok``, or raise an error that states the problem.

        Apache Pulsar checks a topic of this version, V1 or V2.
        """
        query = {"topicVersion": topic_version}
        return await self._http.get("/admin/v2/brokers/health", kind="broker", read=string, query=query)

    async def metrics(self) -> str:
        """Return the broker's metrics in the Prometheus text format."""
        _, content = await self._http.fetch("/metrics/", kind="broker")
        return content.decode()

    async def runtime_configuration(self) -> dict[str, str]:
        """Return every configuration key with its value in force."""
        return await self._http.get(f"{_CONFIGURATION}/runtime", kind="broker", read=record)

    async def dynamic_configuration_names(self) -> Names:
        """Return the keys that can be changed while the broker runs."""
        return await self._http.get(_CONFIGURATION, kind="broker", read=names)

    async def dynamic_configuration(self) -> dict[str, str]:
        """Return the keys that were changed at run time, with their values."""
        return await self._http.get(f"{_CONFIGURATION}/values", kind="broker", read=record)

    async def set_dynamic_configuration(self, name: str, value: str) -> None:
        """Change a key at run time. Raise PreconditionFailed if it is unknown or not dynamic."""
        await self._http.post(f"{_CONFIGURATION}/{quote(name, safe='')}/{quote(value, safe='')}", kind="broker")

    async def delete_dynamic_configuration(self, name: str) -> None:
        """Restore a key to its value in the configuration file."""
        await self._http.delete(f"{_CONFIGURATION}/{quote(name, safe='')}", kind="broker")
