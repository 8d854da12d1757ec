"""Admin calls about brokers and their configuration."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from interpulse.client.json_readers import each, ignored, names, record, string
from interpulse.client.transport.http_session import HttpSession

__all__ = ["BrokersAdmin"]

Names = list[str]

_CONFIGURATION = "/admin/v2/brokers/configuration"


class BrokersAdmin:
    """The brokers of the cluster and their configuration. All values of configuration are text."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self, cluster: str | None = None) -> Names:
        """The active brokers, of ``cluster`` or of the cluster that is asked."""
        path = "/admin/v2/brokers" if cluster is None else f"/admin/v2/brokers/{quote(cluster, safe='')}"
        return await self._http.get(path, kind="cluster", read=names)

    async def version(self) -> str:
        """The line of Pulsar that is served, with our own version behind it where the broker is ours."""
        return await self._http.get("/admin/v2/brokers/version", kind="broker", read=string)

    async def leader(self) -> dict[str, Any]:
        """``brokerId`` and ``serviceUrl`` of the broker that balances load."""
        return await self._http.get("/admin/v2/brokers/leaderBroker", kind="broker", read=record)

    async def owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """The bundles ``tenant/namespace/0x..._0x...`` that a broker, given as ``host:port``, serves, each with why."""
        path = f"/admin/v2/brokers/{quote(cluster, safe='')}/{quote(broker, safe='')}/ownedNamespaces"
        return await self._http.get(path, kind="broker", read=each(record))

    async def check_backlog_quotas(self) -> None:
        """Compare backlogs with their quotas now, instead of waiting for the next check."""
        await self._http.get("/admin/v2/brokers/backlog-quota-check", kind="broker", read=ignored)

    async def health(self, *, topic_version: str | None = None) -> str:
        """``ok``, or an error saying what is wrong. A real broker checks a topic of this version: V1 or V2."""
        query = {"topicVersion": topic_version}
        return await self._http.get("/admin/v2/brokers/health", kind="broker", read=string, query=query)

    async def metrics(self) -> str:
        """What the broker shows Prometheus, in its text format."""
        _, content = await self._http.fetch("/metrics/", kind="broker")
        return content.decode()

    async def runtime_configuration(self) -> dict[str, str]:
        """Every key with the value in force."""
        return await self._http.get(f"{_CONFIGURATION}/runtime", kind="broker", read=record)

    async def dynamic_configuration_names(self) -> Names:
        """The keys that can be changed while the broker runs."""
        return await self._http.get(_CONFIGURATION, kind="broker", read=names)

    async def dynamic_configuration(self) -> dict[str, str]:
        """The keys that were changed at run time."""
        return await self._http.get(f"{_CONFIGURATION}/values", kind="broker", read=record)

    async def set_dynamic_configuration(self, name: str, value: str) -> None:
        """Raises PreconditionFailed for a key that is unknown or cannot be changed at run time."""
        await self._http.post(f"{_CONFIGURATION}/{quote(name, safe='')}/{quote(value, safe='')}", kind="broker")

    async def delete_dynamic_configuration(self, name: str) -> None:
        """Back to the value of the start-up file."""
        await self._http.delete(f"{_CONFIGURATION}/{quote(name, safe='')}", kind="broker")
