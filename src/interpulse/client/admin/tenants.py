"""Admin calls for tenants."""

from __future__ import annotations

from interpulse.client.admin.calls import Changes, ask, make_change
from interpulse.client.json_readers import made_by, names
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import TenantInfo
from interpulse.model.operations import Tenants

Names = list[str]


class TenantsAdmin:
    """Tenants: their administrators and the clusters of their namespaces.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self) -> Names:
        return await ask(self._http, Tenants.LIST, read=names)

    async def get(self, name: str) -> TenantInfo:
        return await ask(self._http, Tenants.GET, name, read=made_by(TenantInfo.from_json))

    async def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Create a tenant. Raise AlreadyExists, or PreconditionFailed if one of its clusters is not registered."""
        return await make_change(self._http, Tenants.CREATE, name, body=tenant.to_json(), previewed=previewed)

    async def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Replace the roles and clusters of a tenant."""
        return await make_change(self._http, Tenants.UPDATE, name, body=tenant.to_json(), previewed=previewed)

    async def delete(self, name: str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a tenant. Raise Conflict if it has namespaces, unless it is forced."""
        return await make_change(self._http, Tenants.DELETE, name, query={"force": force}, previewed=previewed)
