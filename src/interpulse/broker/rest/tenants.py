"""REST calls about tenants."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.bodies import TENANT
from interpulse.broker.rest.http.call import DONE, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.required_permissions import super_user, tenant_itself
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PreconditionFailed

__all__ = ["ROUTES"]


async def list_tenants(call: Call) -> Answer:
    return answer_json(await call.context.tenants.list())


async def get_tenant(call: Call) -> Answer:
    return answer_json((await call.context.tenants.get(call.param("tenant"))).to_json())


async def create_tenant(call: Call) -> Answer:
    await call.context.tenants.create(call.param("tenant"), _tenant(call))
    return DONE


async def update_tenant(call: Call) -> Answer:
    await call.context.tenants.update(call.param("tenant"), _tenant(call))
    return DONE


async def delete_tenant(call: Call) -> Answer:
    await call.context.deletion.tenant(call.param("tenant"), force=call.flag("force"))
    return DONE


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
