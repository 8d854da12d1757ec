"""Requests about tenants."""

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import TenantInfo
from tests.support.stub_web import StubWeb

TENANT = {"adminRoles": ["r"], "allowedClusters": ["east", "west"]}


async def test_tenant_when_changed_then_requests_are_as_pulsars(web: StubWeb, admin: AdminClient) -> None:
    tenant = TenantInfo(("r",), ("west", "east"))
    await admin.tenants.create("demo", tenant)
    await admin.tenants.update("demo", tenant)
    await admin.tenants.delete("demo", force=True)
    assert [(asked.method, asked.target, asked.body) for asked in web.asked] == [
        ("PUT", "/admin/v2/tenants/demo", TENANT),
        ("POST", "/admin/v2/tenants/demo", TENANT),
        ("DELETE", "/admin/v2/tenants/demo?force=true", None),
    ]


async def test_tenant_when_read_then_is_a_value(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/tenants", ["demo"])
    web.answer("GET", "/admin/v2/tenants/demo", TENANT)
    assert await admin.tenants.list() == ["demo"]
    assert await admin.tenants.get("demo") == TenantInfo(("r",), ("east", "west"))
