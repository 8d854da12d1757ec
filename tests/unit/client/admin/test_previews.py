"""Previews of changes, asked only of brokers that offer them."""

from __future__ import annotations

import pytest

from interpulse import __version__
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import NotSupported
from tests.support.stub_web import StubWeb

VERSION = "/admin/v2/brokers/version"
DELETED = [{"change": "DeleteTenant", "name": "demo"}]


@pytest.mark.parametrize("version", [__version__, "1000.0.0", f"{__version__}.dev1"])
async def test_preview_when_the_broker_offers_it_then_gives_its_changes(
    web: StubWeb, admin: AdminClient, version: str
) -> None:
    web.answer("GET", VERSION, f"5.0.0+interpulse-{version}")
    web.answer("DELETE", "/admin/v2/tenants/demo", DELETED)
    assert await admin.tenants.delete("demo", force=True, previewed=True) == DELETED
    assert (web.last.method, web.last.target) == ("DELETE", "/admin/v2/tenants/demo?force=true&preview=true")


@pytest.mark.parametrize("version", ["4.0.4", "5.0.0-SNAPSHOT", "5.0.0+interpulse-0.0.9"])
async def test_preview_when_the_broker_would_make_the_change_then_it_is_not_asked(
    web: StubWeb, admin: AdminClient, version: str
) -> None:
    web.answer("GET", VERSION, version)
    with pytest.raises(NotSupported, match=f"offers no previews; use Interpulse {__version__}"):
        await admin.tenants.delete("demo", previewed=True)
    assert [asked.method for asked in web.asked] == ["GET"]


async def test_change_when_not_previewed_then_the_version_is_not_asked_for(web: StubWeb, admin: AdminClient) -> None:
    assert await admin.tenants.delete("demo") is None
    assert [asked.method for asked in web.asked] == ["DELETE"]
