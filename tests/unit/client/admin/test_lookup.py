"""Requests about lookups."""

from interpulse.client.admin.admin_client import AdminClient
from tests.support.stub_web import StubWeb


async def test_bundle_range_when_asked_then_is_a_string(web: StubWeb, admin: AdminClient) -> None:
    web.answer_raw("GET", "/lookup/v2/topic/persistent/public/default/x/bundle", b"0x00_0xff")
    assert await admin.lookup.bundle_range("x") == "0x00_0xff"
