"""Admin calls for tenants."""

from __future__ import annotations

from interpulse.client.admin.clusters import path_segment
from interpulse.client.admin.previews import Changes, make_change
from interpulse.client.json_readers import made_by, names
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import TenantInfo

Names = list[str]


class TenantsAdmin:
    """Tenants: their administrators and the clusters of their namespaces."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self) -> Names:
        return await self._http.get("/admin/v2/tenants", kind="tenant", read=names)

    async def get(self, name: str) -> TenantInfo:
        return await self._http.get(_tenant(name), kind="tenant", read=made_by(TenantInfo.from_json))

    async def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Create a tenant. Raise AlreadyExists, or PreconditionFailed if one of its clusters is not registered.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        body = tenant.to_json()
        return await make_change(self._http, "PUT", _tenant(name), body, kind="tenant", previewed=previewed)

    async def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Replace the roles and clusters of a tenant.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        body = tenant.to_json()
        return await make_change(self._http, "POST", _tenant(name), body, kind="tenant", previewed=previewed)

    async def delete(self, name: str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a tenant. Raise Conflict if it has namespaces, unless it is forced.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        query = {"force": force}
        return await make_change(self._http, "DELETE", _tenant(name), kind="tenant", query=query, previewed=previewed)


def _tenant(name: str) -> str:
    return f"/admin/v2/tenants/{path_segment('tenant', name)}"
