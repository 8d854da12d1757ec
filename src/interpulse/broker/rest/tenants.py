"""REST calls about tenants."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.bodies import TENANT
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_changes
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed
from interpulse.model.operations import Tenants


async def create_tenant(call: Call) -> Answer:
    """Create a tenant. With ``preview=true`` the answer lists the changes without making them."""
    name, tenant = call.param("tenant"), _tenant(call)
    return answer_changes(call, await call.context.tenants.create(name, tenant, previewed=call.previewed))


async def update_tenant(call: Call) -> Answer:
    """Replace roles and clusters. With ``preview=true`` the answer lists the changes without making them."""
    name, tenant = call.param("tenant"), _tenant(call)
    return answer_changes(call, await call.context.tenants.update(name, tenant, previewed=call.previewed))


async def delete_tenant(call: Call) -> Answer:
    """Delete a tenant. With ``preview=true`` the answer lists the changes without making them."""
    name, force = call.param("tenant"), call.flag("force")
    return answer_changes(call, await call.context.deletion.tenant(name, force=force, previewed=call.previewed))


def _tenant(call: Call) -> TenantInfo:
    if call.json_or_none() is None:
        raise PreconditionFailed("TenantInfo is null")
    return TenantInfo.from_json(call.object(TENANT))


ROUTES: Final = (
    Route(Tenants.LIST, lambda call: call.context.tenants.list()),
    Route(Tenants.GET, lambda call: call.context.tenants.get(call.param("tenant"))),
    Route(Tenants.CREATE, create_tenant),
    Route(Tenants.UPDATE, update_tenant),
    Route(Tenants.DELETE, delete_tenant),
)
