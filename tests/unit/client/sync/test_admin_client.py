"""The blocking admin client, which makes the calls of the asynchronous one in its own thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interpulse.client.sync.admin_client import AdminClient
from interpulse.model.errors import AlreadyClosed, AlreadyExists
from interpulse.model.operations import Topics
from tests.support.stub_web import StubWeb


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as stub:
        yield stub


def test_call_returns_the_answer(web: StubWeb) -> None:
    web.answer("GET", "/admin/v2/tenants", ["demo"])
    with AdminClient(web.url) as admin:
        assert admin.tenants.list() == ["demo"]
        admin.topics.create_partitioned("t/n/a", 3, local_only=True)
    assert (web.last.method, web.last.body) == ("PUT", 3)
    assert web.last.target == "/admin/v2/persistent/t/n/a/partitions?createLocalTopicOnly=true"


def test_refusal_is_raised_in_the_thread_of_the_caller(web: StubWeb) -> None:
    web.answer("PUT", "/admin/v2/persistent/t/n/a", {"reason": "This topic already exists"}, status=409)
    with AdminClient(web.url) as admin, pytest.raises(AlreadyExists):
        admin.topics.create("t/n/a")


def test_planned_request_is_sent(web: StubWeb) -> None:
    with AdminClient(web.url) as admin:
        admin.send(Topics.UNLOAD.request("t/n/a"))
    assert (web.last.method, web.last.target) == ("PUT", "/admin/v2/persistent/t/n/a/unload")


def test_closed_client_refuses_calls_and_can_be_closed_again(web: StubWeb) -> None:
    admin = AdminClient(web.url)
    assert admin.web_url == web.url
    admin.close()
    admin.close()
    with pytest.raises(AlreadyClosed):
        admin.brokers.version()
