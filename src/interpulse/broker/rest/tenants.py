"""REST calls about tenants."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.bodies import TENANT
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_changes, answer_json
from interpulse.broker.rest.http.required_permissions import super_user, tenant_itself
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed


async def list_tenants(call: Call) -> Answer:
    return answer_json(await call.context.tenants.list())


async def get_tenant(call: Call) -> Answer:
    return answer_json((await call.context.tenants.get(call.param("tenant"))).to_json())


async def create_tenant(call: Call) -> Answer:
    """Create a tenant. With ``preview=true`` the answer lists the changes without making them."""
    tenant = _tenant(call)
    return answer_changes(
        call, await call.context.tenants.create(call.param("tenant"), tenant, previewed=call.previewed)
    )


async def update_tenant(call: Call) -> Answer:
    """Replace roles and clusters. With ``preview=true`` the answer lists the changes without making them."""
    tenant = _tenant(call)
    return answer_changes(
        call, await call.context.tenants.update(call.param("tenant"), tenant, previewed=call.previewed)
    )


async def delete_tenant(call: Call) -> Answer:
    """Delete a tenant. With ``preview=true`` the answer lists the changes without making them."""
    force = call.flag("force")
    return answer_changes(
        call, await call.context.deletion.tenant(call.param("tenant"), force=force, previewed=call.previewed)
    )


def _tenant(call: Call) -> TenantInfo:
    body = call.json_or_none()
    if body is None:
        raise PreconditionFailed("TenantInfo is null")
    return TenantInfo.from_json(call.object(TENANT))


ROUTES: Final = (
    Route("GET", "/admin/v2/tenants", list_tenants, super_user),
    Route("GET", "/admin/v2/tenants/{tenant}", get_tenant, tenant_itself),
    Route("PUT", "/admin/v2/tenants/{tenant}", create_tenant, tenant_itself),
    Route("POST", "/admin/v2/tenants/{tenant}", update_tenant, tenant_itself),
    Route("DELETE", "/admin/v2/tenants/{tenant}", delete_tenant, tenant_itself),
)
