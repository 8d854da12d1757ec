"""Admin calls about tenants."""

from __future__ import annotations

from interpulse.client.admin.clusters import path_segment
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

    async def create(self, name: str, tenant: TenantInfo) -> None:
        """Raises AlreadyExists, or PreconditionFailed if one of its clusters is not registered."""
        await self._http.put(_tenant(name), tenant.to_json(), kind="tenant")

    async def update(self, name: str, tenant: TenantInfo) -> None:
        await self._http.post(_tenant(name), tenant.to_json(), kind="tenant")

    async def delete(self, name: str, *, force: bool = False) -> None:
        """Raises Conflict if it still has namespaces and is not forced."""
        await self._http.delete(_tenant(name), kind="tenant", query={"force": force})


def _tenant(name: str) -> str:
    return f"/admin/v2/tenants/{path_segment('tenant', name)}"
