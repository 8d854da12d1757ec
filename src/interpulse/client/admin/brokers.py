"""Admin calls for brokers and their configuration."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

from interpulse.client.admin.calls import ask, send, wait_text
from interpulse.client.json_readers import each, names, record, record_with, string
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import UnknownError
from interpulse.model.operations import Brokers

Names = list[str]


class BrokersAdmin:
    """Brokers of the cluster and their configuration. All configuration values are text."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self, cluster: str | None = None) -> Names:
        """Return the active brokers of ``cluster``, by default of the cluster that is asked."""
        if cluster is None:
            return await ask(self._http, Brokers.LIST, read=names)
        return await ask(self._http, Brokers.LIST_OF_CLUSTER, cluster, read=names)

    async def version(self) -> str:
        """Return the Pulsar version that the broker implements. Interpulse appends its own version."""
        return await ask(self._http, Brokers.GET_VERSION, read=string)

    async def time_ms(self) -> int:
        """Return the broker's time in milliseconds since 1970, in whole seconds. Raise UnknownError without a time."""
        headers, _ = await self._http.fetch(Brokers.GET_VERSION.path, kind="broker")
        try:
            return int(parsedate_to_datetime(headers.get("Date", "")).timestamp() * 1000)
        except ValueError as error:
            raise UnknownError(
                f"The broker's answer has no time in its Date header: {headers.get('Date')!r}"
            ) from error

    async def leader(self) -> dict[str, Any]:
        """Return ``brokerId`` and ``serviceUrl`` of the broker that balances the load."""
        return await ask(self._http, Brokers.GET_LEADER, read=record)

    async def owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """Return the bundles that a broker ``host:port`` serves, each with the reason.

        Bundles have the form ``tenant/namespace/0x..._0x...``.
        """
        return await ask(self._http, Brokers.GET_OWNED, cluster, broker, read=each(record))

    async def check_backlog_quotas(self) -> None:
        """Compare backlogs with their quotas now instead of at the next periodic check."""
        await send(self._http, Brokers.CHECK_BACKLOG_QUOTAS)

    async def health(self, *, topic_version: str | None = None) -> str:
        """Return ``ok``, or raise an error that states the problem.

        Apache Pulsar checks a topic of this version, V1 or V2.
        """
        return await ask(self._http, Brokers.CHECK_HEALTH, read=string, query={"topicVersion": topic_version})

    async def metrics(self) -> str:
        """Return the broker's metrics in the Prometheus text format."""
        _, content = await self._http.fetch(f"{Brokers.GET_METRICS.path}/", kind="broker")
        return content.decode()

    async def runtime_configuration(self) -> dict[str, str]:
        """Return every configuration key with its value in force."""
        return await ask(self._http, Brokers.GET_RUNTIME, read=record)

    async def metadata_changes(self, *, since: str = "", wait_s: float = 0) -> str:
        """Return a token of the present topics, policies and clusters, as soon as it differs from ``since``.

        Wait up to ``wait_s`` seconds for that, a minute at most. Only Interpulse has this call, with
        ``supportsMetadataChanges`` in the runtime configuration. Raise InvalidRequest if ``wait_s`` is not less than
        the time-out of this client.
        """
        query = {"since": since, "wait": wait_text(wait_s, self._http.timeout_ms)}
        answer = await ask(self._http, Brokers.AWAIT_CHANGES, read=record_with("token"), query=query)
        return str(answer["token"])

    async def dynamic_configuration_names(self) -> Names:
        """Return the keys that can be changed while the broker runs."""
        return await ask(self._http, Brokers.LIST_DYNAMIC, read=names)

    async def dynamic_configuration(self) -> dict[str, str]:
        """Return the keys that were changed at run time, with their values."""
        return await ask(self._http, Brokers.GET_DYNAMIC, read=record)

    async def set_dynamic_configuration(self, name: str, value: str) -> None:
        """Change a key at run time. Raise PreconditionFailed if it is unknown or not dynamic."""
        await send(self._http, Brokers.SET_DYNAMIC, name, value)

    async def delete_dynamic_configuration(self, name: str) -> None:
        """Restore a key to its value in the configuration file."""
        await send(self._http, Brokers.DELETE_DYNAMIC, name)
