"""Every failure behind the REST front end is answered with a status and a JSON reason."""

from __future__ import annotations

import asyncio
import logging
import socket
from urllib.parse import urlsplit

import pytest

from interpulse.model.errors import MetadataError
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "nowhere", None, 404, "No resource at /admin/v2/nowhere"),
        ("GET", "/", None, 404, "No resource"),
        ("GET", "persistent/public/default//stats", None, 404, "No resource"),
        ("POST", "clusters", None, 405, "only GET"),
        ("PUT", "tenants/demo", b"{bad", 400, "not JSON"),
        ("PUT", "tenants/demo", [], 400, "must be an object"),
        ("POST", "namespaces/public/default/replication", "east", 400, "must be an array"),
        ("POST", "namespaces/public/default/replication", [[1]], 400, "array of strings"),
        ("POST", "namespaces/public/default/messageTTL", True, 400, "an integer"),
        ("POST", "namespaces/public/default/deduplication", "yes", 400, "true or false"),
        ("POST", "namespaces/public/default/deduplication", b"", 400, "needs a body"),
        ("PUT", "persistent/public/default/x/partitions", {"partitions": "two"}, 400, "an integer"),
        ("PUT", "persistent/public/default/x/partitions", {"partitions": 2, "properties": [1]}, 400, "properties"),
        ("PUT", "persistent/public/default/x/subscription/s", {"ledgerId": "1"}, 400, "message id"),
        ("POST", "persistent/public/default/x/subscription/s/skip/many", None, 400, "an integer"),
        ("GET", "persistent/public/default/a%2Fb/partitions", None, 412, "must not be blank or contain '/'"),
        ("GET", "persistent/pub%20lic/default/x/partitions", None, 412, "letters, digits"),
        ("GET", "persistent/public/default/-partition-3/partitions", None, 412, "partition suffix"),
        ("POST", "namespaces/public/default/offloadPolicies", None, 501, "does not offer it"),
        ("PUT", "schemas/public/default/x/schema", {}, 405, "only DELETE, GET, POST"),
    ],
)
async def test_refusal_is_json_with_a_reason(
    broker: RestBroker, method: str, path: str, body: object, status: int, words: str
) -> None:
    reply = await call(broker.web_url, method, path, body)
    assert (reply.status, reply.headers["Content-Type"]) == (status, "application/json")
    assert words in reply.reason


async def test_wrong_method_names_the_right_ones(broker: RestBroker) -> None:
    reply = await call(broker.web_url, "PATCH", "clusters/standalone")
    assert reply.headers["Allow"] == "DELETE, GET, POST, PUT"


async def test_body_above_the_limit_is_refused(broker: RestBroker) -> None:
    reply = await call(broker.web_url, "PUT", "tenants/demo", b"x" * 2_000_000)
    assert reply.status == 413
    assert reply.reason


async def test_body_when_the_client_resets_the_connection_then_no_failure_is_logged(
    broker: RestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "interpulse.audit")
    address = urlsplit(broker.web_url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(b"PUT /admin/v2/tenants/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.transport.abort()
    await eventually(lambda: "code=400" in caplog.text)
    assert "request failed" not in caplog.text


async def test_unforeseen_failure_is_answered_and_logged(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(name: str) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(broker.context.tenants, "get", fail)
    reply = await call(broker.web_url, "GET", "tenants/public")
    assert (reply.status, reply.reason) == (500, "RuntimeError: boom")
    assert "request failed method=GET path=/admin/v2/tenants/public" in caplog.text


async def test_store_that_cannot_answer_is_a_500_with_its_sentence(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(name: str) -> None:
        raise MetadataError("the disk is gone")

    monkeypatch.setattr(broker.context.tenants, "get", fail)
    reply = await call(broker.web_url, "GET", "tenants/public")
    assert (reply.status, reply.reason) == (500, "the disk is gone")


async def test_garbage_on_the_socket_does_not_hurt_others(broker: RestBroker) -> None:
    host, port = broker.web_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as garbage:
        garbage.sendall(b"\x00\xff\x00 not http at all\r\n\r\n")
        assert (await call(broker.web_url, "GET", "clusters")).status == 200
