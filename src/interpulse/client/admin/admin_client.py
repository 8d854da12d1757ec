"""Admin client with one method per REST operation.

::

    async with AdminClient("http://127.0.0.1:8080") as admin:
        await admin.topics.create_partitioned("persistent://demo/flights/departures", 4)
        print(await admin.topics.list("demo/flights"))

Works with every supported line of Apache Pulsar and with Interpulse. Names are text or values of
``interpulse.model.names``. Answers are values of ``interpulse.model`` where one exists, otherwise decoded JSON.
"""

from __future__ import annotations

from interpulse.client.admin.brokers import BrokersAdmin
from interpulse.client.admin.clusters import ClustersAdmin
from interpulse.client.admin.lookup import LookupAdmin
from interpulse.client.admin.namespaces import NamespacesAdmin
from interpulse.client.admin.permissions import PermissionsAdmin
from interpulse.client.admin.schemas import SchemasAdmin
from interpulse.client.admin.tenants import TenantsAdmin
from interpulse.client.admin.topic_policies import TopicPoliciesAdmin
from interpulse.client.admin.topics import TopicsAdmin
from interpulse.client.closing import AsyncCloses
from interpulse.client.credentials import Credentials
from interpulse.client.json_readers import ignored
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import shown_address
from interpulse.model.operations import AdminRequest


class AdminClient(AsyncCloses):
    """Administration of one cluster.

    Use it as an async context manager, or call :meth:`close`. ``web_url`` may name several hosts
    (``http://a:8080,b:8080``). The constructor opens no connection and raises ValueError for an invalid URL. Every
    method raises a class of ``interpulse.model.errors``: the broker's error, NotConnected or OperationTimeout.
    """

    def __init__(
        self,
        web_url: str,
        *,
        credentials: Credentials | None = None,
        timeout_ms: int = 30_000,
        tls: TlsOptions | None = None,
    ) -> None:
        self.web_url = shown_address(web_url)
        """Service URL, for messages."""
        self._http = self._new_session(web_url, credentials=credentials, timeout_ms=timeout_ms, tls=tls)
        self.clusters = ClustersAdmin(self._http)
        self.tenants = TenantsAdmin(self._http)
        self.namespaces = NamespacesAdmin(self._http)
        self.topics = TopicsAdmin(self._http)
        self.topic_policies = TopicPoliciesAdmin(self._http)
        self.permissions = PermissionsAdmin(self._http)
        self.schemas = SchemasAdmin(self._http)
        self.brokers = BrokersAdmin(self._http)
        self.lookup = LookupAdmin(self._http)

    def _new_session(
        self, web_url: str, *, credentials: Credentials | None, timeout_ms: int, tls: TlsOptions | None
    ) -> HttpSession:
        """Return the HTTP session that makes the calls."""
        return HttpSession(web_url, credentials=credentials, timeout_ms=timeout_ms, tls=tls)

    async def close(self) -> None:
        await self._http.close()

    async def send(self, request: AdminRequest) -> None:
        """Send a planned request, such as one change of a replication plan."""
        await self._http.request(request.method, request.path, kind=request.subject, read=ignored, body=request.body)
