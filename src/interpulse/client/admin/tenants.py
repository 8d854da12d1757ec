"""Admin calls about tenants."""

from __future__ import annotations

from interpulse.client.admin.clusters import path_segment
from interpulse.client.admin.previews import Changes, make_change
from interpulse.client.json_readers import made_by, names
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import TenantInfo

__all__ = ["TenantsAdmin"]

Names = list[str]


class TenantsAdmin:
    """Tenants: their administrators, and the clusters of their namespaces."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self) -> Names:
        return await self._http.get("/admin/v2/tenants", kind="tenant", read=names)

    async def get(self, name: str) -> TenantInfo:
        return await self._http.get(_tenant(name), kind="tenant", read=made_by(TenantInfo.from_json))

    async def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Create a tenant, or return the changes that would do so if it is only ``previewed``.

        Raises AlreadyExists, or PreconditionFailed if one of its clusters is not registered.
        """
        body = tenant.to_json()
        return await make_change(self._http, "PUT", _tenant(name), body, kind="tenant", previewed=previewed)

    async def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Replace the roles and clusters of a tenant, or return the changes if it is only ``previewed``."""
        body = tenant.to_json()
        return await make_change(self._http, "POST", _tenant(name), body, kind="tenant", previewed=previewed)

    async def delete(self, name: str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a tenant, or return the changes if it is only ``previewed``.

        Raises Conflict if it still has namespaces and is not forced.
        """
        query = {"force": force}
        return await make_change(self._http, "DELETE", _tenant(name), kind="tenant", query=query, previewed=previewed)


def _tenant(name: str) -> str:
    return f"/admin/v2/tenants/{path_segment('tenant', name)}"
