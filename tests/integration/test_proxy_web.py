"""Calls of the admin API through the proxy, seen by the broker that gets them."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

from tests.support.proxies import ProxyInThread, proxy_in_thread
from tests.support.standalone_process import free_port
from tests.support.stub_web import StubWeb
from tests.support.waiting import until

SECONDS_MAX = 60
SERVICE_URL = "pulsar://127.0.0.1:1"
TARGET = "/admin/v2/persistent/public/default/a%2Fb%20c/stats?x=1&y=%26"


@pytest.fixture
def broker() -> Iterator[StubWeb]:
    with StubWeb() as served:
        yield served


def call(
    proxy: ProxyInThread, target: str, method: str = "GET", body: object = None, **headers: str
) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of the answer."""
    content = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(proxy.web_url.removeprefix("http://"), timeout=SECONDS_MAX)) as connection:
        connection.request(method, target, content, named)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.headers)


def test_call_when_forwarded_then_comes_as_it_was_sent_and_so_does_the_answer(broker: StubWeb) -> None:
    broker.answer_raw("PUT", TARGET.partition("?")[0], b"\x1f\x8b", status=409, headers={"Content-Encoding": "gzip"})
    with proxy_in_thread(SERVICE_URL, broker.url) as proxy:
        status, body, headers = call(proxy, TARGET, "PUT", {"a": 1}, Content_Type="application/json", X_Own="kept")
    assert (status, body, headers["Content-Encoding"]) == (409, b"\x1f\x8b", "gzip")
    asked = broker.last
    assert (asked.method, asked.target, asked.body) == ("PUT", TARGET, {"a": 1})
    assert (asked.headers["Content-Type"], asked.headers["X-Own"]) == ("application/json", "kept")
    assert asked.headers["Host"] == broker.url.removeprefix("http://")
    assert asked.headers["X-Forwarded-For"] == "127.0.0.1"


def test_body_when_it_is_compressed_then_comes_as_it_was_sent() -> None:
    content, received = gzip.compress(json.dumps({"a": 1}).encode()), bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while b"\r\n\r\n" not in received or not received.endswith(content):
                    read = connection.recv(65536)
                    if not read:
                        return
                    received.extend(read)
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        broker = threading.Thread(target=serve)
        broker.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with proxy_in_thread(SERVICE_URL, url, httpProxyTimeout=5000) as proxy:
            request = urllib.request.Request(f"{proxy.web_url}/admin/v2/tenants/t", content, method="PUT")
            request.add_header("Content-Encoding", "gzip")
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                assert answer.status == 204
        broker.join()
    assert b"Content-Encoding: gzip" in received
    assert f"Content-Length: {len(content)}\r\n".encode() in received


@pytest.mark.parametrize("forwarded", [True, False])
def test_call_when_it_names_a_principal_then_only_credentials_go_on_and_only_where_set(
    broker: StubWeb, forwarded: bool
) -> None:
    with proxy_in_thread(SERVICE_URL, broker.url, forwardAuthorizationCredentials=forwarded) as proxy:
        call(
            proxy,
            "/admin/v2/clusters",
            Authorization="Bearer mine",
            X_Original_Principal="admin",
            X_Forwarded_For="10.0.0.1",
            Connection="close, X-Hop",
            X_Hop="1",
        )
    assert broker.last.headers.get("Authorization") == ("Bearer mine" if forwarded else None)
    assert broker.last.headers["X-Forwarded-For"] == "127.0.0.1"
    assert not {"X-Original-Principal", "X-Hop"} & set(broker.last.headers)


@pytest.mark.parametrize("forwarded", [True, False])
def test_call_when_its_host_is_not_the_proxys_then_refused_whatever_credentials_it_brings(
    broker: StubWeb, forwarded: bool
) -> None:
    with proxy_in_thread(SERVICE_URL, broker.url, forwardAuthorizationCredentials=forwarded) as proxy:
        status, body, _ = call(proxy, "/admin/v2/clusters", Host="evil.example", Authorization="x")
    assert status == 403
    assert json.loads(body)["reason"].startswith("Host: evil.example is not a name of this proxy")
    assert not broker.asked


def test_call_when_a_broker_sends_it_on_then_the_proxy_follows_with_its_body(broker: StubWeb) -> None:
    with StubWeb() as owner, proxy_in_thread(SERVICE_URL, broker.url, forwardAuthorizationCredentials=True) as proxy:
        location = f"{owner.url}/admin/v2/topic?authoritative=true"
        broker.answer_raw("POST", "/admin/v2/topic", b"", status=307, headers={"Location": location})
        owner.answer("POST", "/admin/v2/topic", {"done": True})
        status, body, _ = call(proxy, "/admin/v2/topic", "POST", {"n": 3}, Authorization="Bearer mine")
        assert (status, json.loads(body)) == (200, {"done": True})
        assert (owner.last.target, owner.last.body) == ("/admin/v2/topic?authoritative=true", {"n": 3})
        assert owner.last.headers["Authorization"] == "Bearer mine"


@pytest.mark.parametrize("location", ["/admin/v2/circle", "https://127.0.0.1:1/admin", "file:///etc/passwd"])
def test_call_when_a_broker_sends_it_nowhere_then_fails(broker: StubWeb, location: str) -> None:
    broker.answer_raw("GET", "/admin/v2/circle", b"", status=307, headers={"Location": location})
    with proxy_in_thread(SERVICE_URL, broker.url) as proxy:
        status, body, _ = call(proxy, "/admin/v2/circle")
    assert status == 502
    assert json.loads(body)["reason"].startswith("The broker cannot be called: ")
    assert len(broker.asked) in (1, 11)


@pytest.mark.parametrize("allowed", ["127.0.0.1", "broker-*"])
def test_call_when_a_broker_sends_it_on_then_only_to_a_host_that_the_settings_allow(
    broker: StubWeb, allowed: str
) -> None:
    with (
        StubWeb() as owner,
        proxy_in_thread(SERVICE_URL, broker.url, brokerProxyAllowedHostNames=allowed) as proxy,
    ):
        broker.answer_raw("GET", "/admin/v2/a", b"", status=307, headers={"Location": "/admin/v2/b"})
        broker.answer_raw("GET", "/admin/v2/b", b"", status=307, headers={"Location": f"{owner.url}/admin/v2/b"})
        status, body, _ = call(proxy, "/admin/v2/a")
    assert len(broker.asked) == 2
    if allowed == "127.0.0.1":
        assert (status, len(owner.asked)) == (204, 1)
    else:
        assert (status, len(owner.asked)) == (502, 0)
        assert "host 127.0.0.1 is not among brokerProxyAllowedHostNames" in json.loads(body)["reason"]


def test_call_when_one_broker_is_gone_then_another_answers(broker: StubWeb) -> None:
    with proxy_in_thread(SERVICE_URL, f"http://127.0.0.1:{free_port()},{broker.url}") as proxy:
        assert [call(proxy, "/admin/v2/clusters")[0] for _ in range(4)] == [204] * 4
    assert len(broker.asked) == 4


@contextmanager
def full() -> Iterator[str]:
    """The URL of a web service whose backlog is full: connecting to it takes for ever."""
    with ExitStack() as opened:
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_call_when_one_broker_accepts_no_connection_then_another_answers(broker: StubWeb) -> None:
    with (
        full() as silent,
        proxy_in_thread(SERVICE_URL, f"{silent},{broker.url}", brokerProxyConnectTimeoutMs=100) as proxy,
    ):
        assert [call(proxy, "/admin/v2/clusters", "POST", {})[0] for _ in range(4)] == [204] * 4
    assert len(broker.asked) == 4


def test_call_when_no_broker_accepts_a_connection_then_fails_with_the_setting() -> None:
    with full() as silent, proxy_in_thread(SERVICE_URL, silent, brokerProxyConnectTimeoutMs=100) as proxy:
        status, body, _ = call(proxy, "/admin/v2/clusters")
    assert (status, "brokerProxyConnectTimeoutMs=100" in json.loads(body)["reason"]) == (504, True)


@pytest.mark.parametrize(("method", "sent"), [("GET", 2), ("POST", 1), ("PUT", 1), ("DELETE", 1)])
def test_call_when_the_broker_hangs_up_then_fails_and_only_one_that_reads_is_sent_again(
    broker: StubWeb, method: str, sent: int
) -> None:
    broker.disconnect(method, "/admin/v2/broken")
    with proxy_in_thread(SERVICE_URL, broker.url) as proxy:
        assert call(proxy, "/admin/v2/ok")[0] == 204  # its connection is kept, and taken for the next call
        assert call(proxy, "/admin/v2/broken", method, None if method == "GET" else {})[0] == 502
    assert [asked.target for asked in broker.asked] == ["/admin/v2/ok", *["/admin/v2/broken"] * sent]


def test_call_when_the_broker_says_nothing_then_fails_within_the_timeout(broker: StubWeb) -> None:
    broker.say_nothing("GET", "/admin/v2/silent")
    with proxy_in_thread(SERVICE_URL, broker.url, httpProxyTimeout=200) as proxy:
        assert call(proxy, "/admin/v2/silent")[0] == 504
    assert len(broker.asked) == 1


def test_call_when_too_many_are_under_way_then_refused_until_one_ends(broker: StubWeb) -> None:
    broker.say_nothing("GET", "/admin/v2/silent")
    with (
        proxy_in_thread(SERVICE_URL, broker.url, maxConcurrentHttpRequests=1, httpProxyTimeout=1000) as proxy,
        ThreadPoolExecutor(1) as beside,
    ):
        silent = beside.submit(call, proxy, "/admin/v2/silent")
        until(lambda: broker.asked)
        status, body, _ = call(proxy, "/admin/v2/clusters")
        assert (status, "maxConcurrentHttpRequests=1" in json.loads(body)["reason"]) == (503, True)
        assert call(proxy, "/livez")[0] == 200
        assert silent.result()[0] == 504
        assert call(proxy, "/admin/v2/clusters")[0] == 204
    assert len(broker.asked) == 2


def test_body_when_it_stalls_then_the_call_ends(broker: StubWeb) -> None:
    with proxy_in_thread(SERVICE_URL, broker.url, httpProxyTimeout=200) as proxy:
        host, _, port = proxy.web_url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection:
            head = f"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\n\r\n"
            connection.sendall(head.encode() + b"half")
            assert connection.makefile("rb").readline().split()[1] == b"408"
    assert not broker.asked


def test_answer_when_the_client_does_not_read_it_then_cut_off(broker: StubWeb) -> None:
    broker.answer_raw("GET", "/admin/v2/large", bytes(64 * 1024 * 1024))
    settings = {"maxConcurrentHttpRequests": 1, "httpProxyTimeout": 500}
    with proxy_in_thread(SERVICE_URL, broker.url, **settings) as proxy:
        host, _, port = proxy.web_url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection:
            connection.sendall(f"GET /admin/v2/large HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            until(lambda: broker.asked)
            until(lambda: call(proxy, "/admin/v2/clusters")[0] == 204)


def test_answer_when_it_is_large_then_comes_whole(broker: StubWeb) -> None:
    content = bytes(range(256)) * 40_000
    broker.answer_raw("GET", "/admin/v2/large", content)
    with proxy_in_thread(SERVICE_URL, broker.url) as proxy:
        assert call(proxy, "/admin/v2/large")[1] == content


def test_answer_when_the_broker_stops_in_the_middle_then_the_client_notices() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def begin() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")

        broker = threading.Thread(target=begin)
        broker.start()
        with (
            proxy_in_thread(SERVICE_URL, f"http://127.0.0.1:{server.getsockname()[1]}") as proxy,
            pytest.raises((http.client.HTTPException, ConnectionError)),
        ):
            call(proxy, "/admin/v2/short")
        broker.join()
