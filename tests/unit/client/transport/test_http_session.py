"""The HTTP session: redirects, several hosts, credentials, and connections that fail."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from interpulse.client.credentials import Credentials
from interpulse.client.json_readers import ignored, record
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.http_session import HttpSession
from interpulse.client.transport.web_urls import parse_web_urls
from interpulse.model.errors import AlreadyClosed, NotConnected, OperationTimeout, PulsarError, UnknownError
from tests.support.stub_web import StubWeb


def _unread(body: Any) -> Any:
    return body


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("http://a:8080", ("http://a:8080",)),
        ("http://a:8080/", ("http://a:8080",)),
        ("https://a:1,b:2", ("https://a:1", "https://b:2")),
        ("http://a,b:2/", ("http://a", "http://b:2")),
        ("http://[::1]:8080", ("http://[::1]:8080",)),
    ],
)
def test_web_url_when_valid_then_gives_one_root_per_host(text: str, roots: tuple[str, ...]) -> None:
    assert parse_web_urls(text) == roots


@pytest.mark.parametrize("text", ["", "a:8080", "pulsar://a:6650", "http://", "http://a:x", "http://:8080", "http://,"])
def test_web_url_when_it_is_none_then_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not a web service URL"):
        parse_web_urls(text)


@pytest.mark.parametrize("path", ["/admin/v2", "/admin", "/behind/a/proxy/admin/v2/"])
def test_web_url_when_it_has_the_path_of_requests_then_says_to_leave_it_out(path: str) -> None:
    with pytest.raises(ValueError, match=f"omit /admin{'/v2' if '/v2' in path else ''}:"):
        parse_web_urls(f"http://a:8080,b:8080{path}")


async def test_request_when_answered_then_decodes_json_and_sends_query_and_body(web: StubWeb) -> None:
    web.answer("POST", "/x", {"a": [1]})
    async with HttpSession(web.url) as http:
        query = {"force": True, "n": 2, "left": None, "s": "a b"}
        answer = await http.request("POST", "/x", kind="topic", read=record, query=query, body={"b": 1})
    assert answer == {"a": [1]}
    assert (web.last.target, web.last.body) == ("/x?force=true&n=2&s=a+b", {"b": 1})
    assert web.last.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
async def test_change_when_its_connection_is_lost_then_is_not_sent_again(web: StubWeb, method: str) -> None:
    web.answer("GET", "/x", 1)
    web.disconnect(method, "/x")
    async with HttpSession(web.url) as http:
        await http.get("/x", kind="topic", read=_unread)
        with pytest.raises(NotConnected):
            await http.request(method, "/x", kind="topic", read=ignored)
    assert [asked.method for asked in web.asked] == ["GET", method]


async def test_question_when_its_connection_is_lost_then_is_sent_again_once(web: StubWeb) -> None:
    web.disconnect("GET", "/x")
    web.answer("GET", "/x", 1)
    web.disconnect("GET", "/y")
    async with HttpSession(web.url) as http:
        assert await http.get("/x", kind="topic", read=_unread) == 1
        with pytest.raises(NotConnected):
            await http.get("/y", kind="topic", read=_unread)
    assert [asked.target for asked in web.asked] == ["/x", "/x", "/y", "/y"]


@pytest.mark.parametrize(
    ("body", "value"), [(b"", None), (b"ok", "ok"), (b"0xc0_0xff", "0xc0_0xff"), (b"false", False)]
)
async def test_answer_when_it_is_no_json_then_is_text(web: StubWeb, body: bytes, value: object) -> None:
    web.answer_raw("GET", "/x", body, content_type="application/json")
    async with HttpSession(web.url) as http:
        assert await http.get("/x", kind="broker", read=_unread) == value


async def test_path_when_form_encoded_then_is_sent_as_it_is(web: StubWeb) -> None:
    async with HttpSession(web.url) as http:
        await http.get("/a+b%2Fc%2B", kind="topic", read=ignored)
    assert web.last.target == "/a+b%2Fc%2B"


async def test_redirect_when_to_another_broker_then_repeats_request_and_credentials(web: StubWeb) -> None:
    with StubWeb() as owner:
        web.answer_raw("PUT", "/x", b"", status=307, headers={"Location": f"{owner.url}/y?authoritative=true"})
        async with HttpSession(web.url, credentials=Credentials.token("token:abc")) as http:
            await http.request("PUT", "/x", kind="topic", read=ignored, body=3)
        asked = owner.last
    assert (asked.method, asked.target, asked.body) == ("PUT", "/y?authoritative=true", 3)
    assert asked.headers["Authorization"] == "Bearer abc"


async def test_redirect_when_to_a_place_that_is_not_trusted_then_is_not_followed(web: StubWeb) -> None:
    asked_about = []

    async def trust_none(root: str) -> bool:
        asked_about.append(root)
        return False

    with StubWeb() as stranger:
        web.answer_raw("PUT", "/x", b"", status=307, headers={"Location": f"{stranger.url}/y"})
        async with HttpSession(web.url, credentials=Credentials.token("token:abc"), trusted=trust_none) as http:
            with pytest.raises(UnknownError, match=f"redirects to {stranger.url}, which is not trusted"):
                await http.request("PUT", "/x", kind="topic", read=ignored, body=3)
        assert (stranger.asked, asked_about) == ([], [stranger.url])


async def test_redirect_when_endless_then_gives_up(web: StubWeb) -> None:
    web.answer_raw("GET", "/x", b"", status=307, headers={"Location": "/x"})
    async with HttpSession(web.url) as http:
        with pytest.raises(UnknownError, match="more than 10 times"):
            await http.get("/x", kind="topic", read=ignored)


async def test_redirect_when_without_target_then_says_so(web: StubWeb) -> None:
    web.answer_raw("GET", "/x", b"", status=307)
    async with HttpSession(web.url) as http:
        with pytest.raises(UnknownError, match="without a target"):
            await http.get("/x", kind="topic", read=ignored)


async def test_host_when_refusing_connections_then_the_next_one_is_asked(web: StubWeb) -> None:
    dead = free_port()
    async with HttpSession(f"http://127.0.0.1:{dead},{web.url.removeprefix('http://')}") as http:
        await http.request("POST", "/x", kind="topic", read=ignored, body=1)
    assert len(web.asked) == 1


async def test_hosts_when_all_refuse_then_error_names_every_address() -> None:
    first, second = free_port(), free_port()
    async with HttpSession(f"http://127.0.0.1:{first},127.0.0.1:{second}") as http:
        with pytest.raises(NotConnected) as caught:
            await http.get("/x", kind="topic", read=ignored)
    assert str(caught.value) == (
        f"Cannot reach http://127.0.0.1:{first}: Connection refused; "
        f"Cannot reach http://127.0.0.1:{second}: Connection refused"
    )


async def test_host_when_it_hangs_up_within_the_handshake_then_the_error_says_something() -> None:
    async def disconnect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)  # with bytes left unread it would be a reset, which has a text of its own
        writer.close()

    async with await asyncio.start_server(disconnect, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with HttpSession(url) as http:
            with pytest.raises(NotConnected, match=f"^Cannot reach {url}: the port answers no TLS handshake"):
                await http.get("/x", kind="topic", read=ignored)


async def test_port_when_it_has_no_tls_then_the_error_says_which_address_it_has(web: StubWeb) -> None:
    url = web.url.replace("http:", "https:")
    async with HttpSession(url) as http:
        with pytest.raises(NotConnected, match=f"^Cannot reach {url}: the port has no TLS: .* begins with http://"):
            await http.get("/x", kind="topic", read=ignored)


async def test_port_when_it_is_the_binary_one_then_the_error_names_that_of_the_web_service() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)  # the rest stays unread: the close is a reset, as on a broker
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server, HttpSession(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as http:
        with pytest.raises(NotConnected, match="looks like the binary port, the web service usually has 8080"):
            await http.get("/x", kind="topic", read=ignored)


async def test_host_when_it_answered_before_then_hanging_up_does_not_cast_doubt_on_its_port(web: StubWeb) -> None:
    web.disconnect("GET", "/broken")
    async with HttpSession(web.url) as http:
        await http.get("/x", kind="topic", read=ignored)
        with pytest.raises(NotConnected, match=r"Server disconnected$"):
            await http.get("/broken", kind="topic", read=ignored)


async def test_host_when_silent_then_times_out_naming_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with HttpSession(url, timeout_ms=100) as http:
            with pytest.raises(OperationTimeout, match=f"{url} did not answer within 100 ms"):
                await http.get("/x", kind="topic", read=ignored)


async def test_host_when_hanging_up_then_is_not_connected(web: StubWeb) -> None:
    web.disconnect("POST", "/x")
    async with HttpSession(web.url) as http:
        with pytest.raises(NotConnected, match=web.url):
            await http.request("POST", "/x", kind="topic", read=ignored, body=1)
    assert len(web.asked) == 1


async def test_session_when_closed_then_refuses_requests(web: StubWeb) -> None:
    http = HttpSession(web.url)
    await http.close()
    with pytest.raises(AlreadyClosed):
        await http.get("/x", kind="topic", read=ignored)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate of a server named localhost, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def secure_web(certificate: Path) -> Iterator[StubWeb]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with StubWeb(context) as stub:
        yield stub


@pytest.mark.parametrize(
    ("host", "trusted", "options", "answered"),
    [
        ("localhost", True, {}, True),
        ("localhost", False, {}, False),
        ("127.0.0.1", True, {}, False),
        ("127.0.0.1", True, {"hostname_verified": False}, True),
        ("127.0.0.1", False, {"insecure_allowed": True}, True),
    ],
)
async def test_server_when_its_certificate_is_checked_then_only_a_good_one_is_asked(
    secure_web: StubWeb, certificate: Path, host: str, trusted: bool, options: dict[str, bool], answered: bool
) -> None:
    tls = TlsOptions(str(certificate) if trusted else None, **options)  # type: ignore[arg-type]
    async with HttpSession(secure_web.url.replace("127.0.0.1", host), tls=tls) as http:
        if answered:
            await http.get("/x", kind="topic", read=ignored)
        else:
            with pytest.raises(NotConnected, match="certificate verify failed"):
                await http.get("/x", kind="topic", read=ignored)
    assert bool(secure_web.asked) is answered


async def test_redirect_when_it_would_leave_encryption_then_is_refused(secure_web: StubWeb, web: StubWeb) -> None:
    secure_web.answer_raw("GET", "/x", b"", status=307, headers={"Location": f"{web.url}/x"})
    async with HttpSession(secure_web.url, tls=TlsOptions(insecure_allowed=True)) as http:
        with pytest.raises(UnknownError, match="not encrypted"):
            await http.get("/x", kind="topic", read=ignored)
    assert web.asked == []


async def test_certificates_when_unreadable_then_says_which_file() -> None:
    tls = TlsOptions(trust_certs_path="/nowhere.pem")
    async with HttpSession("https://127.0.0.1:1", tls=tls) as http:
        with pytest.raises(PulsarError, match=r"/nowhere.pem"):
            await http.get("/x", kind="topic", read=ignored)
