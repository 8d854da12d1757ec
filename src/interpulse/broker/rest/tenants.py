"""REST calls about tenants."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.bodies import TENANT
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_changes, answer_json
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed
from interpulse.model.operations import Tenants


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
    Route(Tenants.LIST, list_tenants),
    Route(Tenants.GET, get_tenant),
    Route(Tenants.CREATE, create_tenant),
    Route(Tenants.UPDATE, update_tenant),
    Route(Tenants.DELETE, delete_tenant),
)
