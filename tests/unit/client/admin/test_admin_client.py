"""The front object of the admin client; its families have tests of their own."""

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AlreadyClosed, TopicNotFound
from tests.support.stub_web import StubWeb


async def test_client_when_given_credentials_then_every_family_shows_them(web: StubWeb) -> None:
    web.answer("GET", "/admin/v2/tenants", ["public"])
    async with AdminClient(web.url, credentials=Credentials.basic("jo", "pw")) as admin:
        assert await admin.tenants.list() == ["public"]
        await admin.topics.create("x")
    assert {asked.headers["Authorization"] for asked in web.asked} == {"Basic am86cHc="}


async def test_client_when_broker_refuses_then_raises_its_reason(web: StubWeb) -> None:
    web.answer("GET", "/admin/v2/persistent/a/b/c/partitions", {"reason": "Topic x not found"}, status=404)
    async with AdminClient(web.url) as admin:
        with pytest.raises(TopicNotFound, match="Topic x not found"):
            await admin.topics.partitioned_metadata("a/b/c")


async def test_client_when_closed_then_refuses(web: StubWeb) -> None:
    admin = AdminClient(web.url)
    await admin.close()
    with pytest.raises(AlreadyClosed):
        await admin.tenants.list()


def test_client_when_url_is_none_then_refuses_at_once() -> None:
    with pytest.raises(ValueError, match="pulsar://x"):
        AdminClient("pulsar://x")
