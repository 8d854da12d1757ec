"""A client's own certificate: files that cannot be used, servers that refuse it, and files that are replaced."""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.json_readers import ignored
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import CertificateError
from tests.support.certificates import Authority, Certificate
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("server", "app", "another"):
        authority.issue(name)
    authority.issue("locked", password=b"secret")
    return authority


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Authority(tmp_path_factory.mktemp("other")).issue("app")


def server_context(authority: Authority, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
    """A server that requires certificates. With TLS 1.2 it refuses within the handshake: no data crosses its alert."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
    context.load_cert_chain(authority.directory / "server.pem", authority.directory / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = newest
    return context


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        pytest.param("app.pem", None, "app.pem is configured without its key: name", id="no-key"),
        pytest.param(None, "app.key", "app.key is configured without its certificate: name", id="no-certificate"),
        pytest.param("none.pem", "app.key", "none.pem cannot be read: No such file", id="certificate-missing"),
        pytest.param("app.pem", "none.key", "none.key cannot be read: No such file", id="key-missing"),
        pytest.param("", "app.key", "cannot be read: Is a directory", id="certificate-unreadable"),
        pytest.param(
            "app.key", "app.key", "the certificate .*app.key is not in PEM format", id="no-certificate-in-file"
        ),
        pytest.param("app.pem", "app.pem", "the key .*app.pem is not in PEM format", id="no-key-in-file"),
        pytest.param("app.pem", "another.key", "another.key does not belong to .*app.pem: name", id="not-a-pair"),
        pytest.param("locked.pem", "locked.key", "locked.key is protected by a password: store", id="password"),
        pytest.param("torn.pem", "app.key", "torn.pem and the key .*cannot be used: .*replace", id="damaged"),
    ],
)
def test_files_when_they_cannot_be_used_then_are_named_with_the_remedy(
    authority: Authority, certificate: str | None, key: str | None, words: str
) -> None:
    whole = (authority.directory / "app.pem").read_text()
    (authority.directory / "torn.pem").write_text(whole[: len(whole) // 2])

    def path(name: str | None) -> str | None:
        return None if name is None else str(authority.directory / name)

    with pytest.raises(CertificateError, match=words):
        TlsOptions(certificate_path=path(certificate), key_path=path(key)).context()


@pytest.mark.parametrize(
    ("reason", "shown", "words"),
    [
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", True, "refuses the client certificate /c.pem .certificate unknown.: see"),
        ("TLSV1_ALERT_INTERNAL_ERROR", True, "refuses the client certificate /c.pem .internal error"),
        ("TLSV1_ALERT_DECRYPT_ERROR", True, "refuses the client certificate /c.pem .decrypt error"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", False, "asks for a client certificate and none is configured"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", False, "asks for .* none is configured, or has no cipher in common"),
        ("TLSV1_ALERT_INTERNAL_ERROR", False, None),
        ("TLSV1_ALERT_PROTOCOL_VERSION", True, None),
        ("CERTIFICATE_VERIFY_FAILED", True, None),
    ],
)
def test_alert_when_about_the_certificate_then_says_which_one(reason: str, shown: bool, words: str | None) -> None:
    """Most come from a real Pulsar, whose two ports put the same thing differently."""
    error = ssl.SSLError(1, reason)
    error.reason = reason
    tls = TlsOptions(certificate_path="/c.pem", key_path="/k.pem") if shown else TlsOptions()
    refusal = tls.refusal("https://w", error)
    if words is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert re.match(f"https://w {words}", str(refusal))


@pytest.mark.parametrize(
    ("credentials", "url", "words"),
    [
        pytest.param(Credentials.tls("/c", "/k"), "pulsar://w:6650", "needs an encrypted address", id="plain"),
        pytest.param(Credentials("tls", ""), "pulsar+ssl://w:6651", "tlsCertFile:/path,tlsKeyFile:/path", id="nothing"),
    ],
)
def test_authentication_by_tls_when_it_could_not_work_then_is_refused(
    credentials: Credentials, url: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        ClientConfig(url, credentials=credentials)
    with pytest.raises(ValueError, match=words):
        HttpSession(url.replace("pulsar+ssl", "https").replace("pulsar", "http"), credentials=credentials)


def both_ways(certificate: Certificate) -> tuple[tuple[Credentials | None, TlsOptions], ...]:
    """As credentials, and beside them."""
    files = str(certificate.certificate), str(certificate.key)
    shown = TlsOptions(insecure_allowed=True, certificate_path=files[0], key_path=files[1])
    return (
        (Credentials.tls(*files), TlsOptions(insecure_allowed=True)),
        (Credentials("tls", ""), shown),
        (Credentials.token("abc"), shown),
    )


async def test_connection_when_asked_for_a_certificate_then_shows_it(authority: Authority) -> None:
    files = Certificate(authority.directory / "app.pem", authority.directory / "app.key")
    async with ScriptedBroker(tls=server_context(authority, ssl.TLSVersion.TLSv1_3)) as broker:
        for credentials, tls in both_ways(files):
            config = ClientConfig(broker.url, credentials=credentials, tls=tls)
            connection = await Connection.open(config.url.brokers[0], config)
            connection.close()
            await connection.closed()
        said = [(peer.connect.auth_method_name, peer.connect.auth_data) for peer in broker.peers]
        assert said == [("tls", b""), ("tls", b""), ("token", b"abc")]


@pytest.mark.parametrize("shown", [True, False])
async def test_connection_when_its_certificate_is_refused_then_says_which(
    authority: Authority, stranger: Certificate, shown: bool
) -> None:
    with StubWeb(server_context(authority)) as server:  # asyncio's servers disconnect without an alert
        url = server.url.replace("https", "pulsar+ssl")
        credentials = Credentials.tls(str(stranger.certificate), str(stranger.key)) if shown else None
        config = ClientConfig(url, credentials=credentials, tls=TlsOptions(insecure_allowed=True))
        with pytest.raises(CertificateError) as caught:
            await Connection.open(config.url.brokers[0], config)
    assert url in str(caught.value)
    assert (str(stranger.certificate) in str(caught.value)) is shown


async def test_refusal_that_was_not_heard_is_asked_for_again(
    authority: Authority, stranger: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's alert is lost when the request is written after it disconnected."""
    monkeypatch.setattr("interpulse.client.tls._LISTEN_S", 0.2)
    directory, broken = authority.directory, BrokenPipeError(errno.EPIPE, "Broken pipe")
    refused = TlsOptions(str(authority.file), certificate_path=str(stranger.certificate), key_path=str(stranger.key))
    taken = replace(refused, certificate_path=str(directory / "app.pem"), key_path=str(directory / "app.key"))
    with StubWeb(server_context(authority, ssl.TLSVersion.TLSv1_3)) as web:
        port = int(web.url.rpartition(":")[2])
        found = await refused.unheard_refusal(web.url, "127.0.0.1", port, broken)
        assert f"{web.url} refuses the client certificate {stranger.certificate} " in str(found)
        assert await taken.unheard_refusal(web.url, "127.0.0.1", port, broken) is None
        assert await refused.unheard_refusal(web.url, "127.0.0.1", port, TimeoutError()) is None
    gone = await refused.unheard_refusal(web.url, "127.0.0.1", port, ConnectionResetError(errno.ECONNRESET, "reset"))
    assert gone is None


async def test_http_when_closed_after_a_request_was_given_up_then_leaves_no_connection(authority: Authority) -> None:
    """Over TLS the goodbye of the connection waits for an answer of the server."""
    files = Certificate(authority.directory / "app.pem", authority.directory / "app.key")
    (credentials, tls), *_ = both_ways(files)
    with StubWeb(server_context(authority, ssl.TLSVersion.TLSv1_3)) as web:
        web.say_nothing("GET", "/x")
        port = int(web.url.rpartition(":")[2])
        async with HttpSession(web.url, credentials=credentials, tls=tls) as http:
            asking = asyncio.create_task(http.get("/x", kind="topic", read=ignored))
            while not web.asked:  # noqa: ASYNC110  # another thread acts
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait([asking])
        left = [each for each in psutil.Process().net_connections("tcp") if each.raddr and each.raddr.port == port]
        assert [each.status for each in left if each.fd != -1] == []


async def test_http_when_the_certificate_is_replaced_then_the_new_one_is_shown(
    authority: Authority, stranger: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shown = Certificate(tmp_path / "shown.pem", tmp_path / "shown.key")
    (credentials, tls), *_ = both_ways(shown)
    with StubWeb(server_context(authority)) as web:
        async with HttpSession(web.url, credentials=credentials, tls=tls) as http:
            with pytest.raises(CertificateError, match=r"shown.pem cannot be read"):
                await http.get("/x", kind="topic", read=ignored)
            for file, content in zip(shown, stranger, strict=True):
                file.write_bytes(content.read_bytes())
            with pytest.raises(CertificateError, match=f"{web.url} refuses the client certificate .*shown.pem"):
                await http.get("/x", kind="topic", read=ignored)
            for file, name in zip(shown, ("app.pem", "app.key"), strict=True):
                file.write_bytes((authority.directory / name).read_bytes())
            await http.get("/x", kind="topic", read=ignored)
            assert "Authorization" not in web.last.headers
            shown.key.write_bytes((authority.directory / "another.key").read_bytes())  # its certificate comes next
            await http.get("/x", kind="topic", read=ignored)
            assert "does not belong to" in caplog.text
