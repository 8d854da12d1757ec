"""Listening inside TLS: which files are refused, which clients, and files that change."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from interpulse.rules.tls import plan_offer
from interpulse.serving import tls as tls_module
from interpulse.serving.tls import ExpiryLog, ServerTls, TlsListener, UnusableTls
from tests.support.certificates import Authority, Certificate

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def server_tls(files: Certificate, **others: Any) -> ServerTls:
    return ServerTls(str(files.certificate), str(files.key), **others)


@asynccontextmanager
async def listening(tls: ServerTls) -> AsyncIterator[tuple[TlsListener, int]]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    listener = TlsListener(tls, bound, Echo, backlog=100)
    await listener.start()
    try:
        yield listener, bound.getsockname()[1]
    finally:
        listener.close()


def trusting(authority: Authority, shown: Certificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context


class Visitor:
    """One client, which has to hear back what it says."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._plain = socket.create_connection(("127.0.0.1", port), 30)
        try:
            self.tls = context.wrap_socket(self._plain, server_hostname="127.0.0.1")
        except BaseException:
            self._plain.close()
            raise

    def hears(self, word: bytes = b"word") -> bool:
        self.tls.sendall(word)
        return self.tls.recv(100) == word

    @property
    def serial(self) -> str:
        certificate = self.tls.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])

    def close(self) -> None:
        self.tls.close()


async def visit(port: int, context: ssl.SSLContext) -> Visitor:
    return await asyncio.to_thread(Visitor, port, context)


async def serial_at(port: int, context: ssl.SSLContext) -> str:
    def look() -> str:
        visitor = Visitor(port, context)
        try:
            assert visitor.hears()
            return visitor.serial
        finally:
            visitor.close()

    return await asyncio.to_thread(look)


async def refused(port: int, context: ssl.SSLContext) -> None:
    """In TLS 1.3 a client hears of its certificate's refusal with the first bytes only."""

    def attempt() -> None:
        visitor = Visitor(port, context)
        try:
            if not visitor.hears():
                raise ConnectionError("closed")
        finally:
            visitor.close()

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.to_thread(attempt)


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a coroutine on one of the loops that a broker may run on."""

    def run_there(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(work)

    return run_there


# --- files


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"certificate_path": "/not/there"}, "tlsCertificateFilePath=/not/there cannot be read: No such file"),
        ({"key_path": "/not/there"}, "tlsKeyFilePath=/not/there cannot be read: No such file"),
        ({"trust_certs_path": "/not/there"}, "tlsTrustCertsFilePath=/not/there cannot be read: No such file"),
        ({"key_path": "certificate"}, "tlsKeyFilePath=.* is not in PEM format"),
        ({"certificate_path": "key"}, "tlsCertificateFilePath=.* is not in PEM format"),
        ({"key_path": "other"}, "tlsKeyFilePath=.*other.key does not belong to tlsCertificateFilePath=.*broker.pem"),
        ({"key_path": "locked"}, "tlsKeyFilePath=.*locked.key is protected by a password: .*openssl pkey"),
        ({"certificate_path": "torn"}, "tlsCertificateFilePath=.*torn.pem and tlsKeyFilePath=.* cannot be used"),
        ({"trust_certs_path": "torn"}, "tlsTrustCertsFilePath=.*torn.pem cannot be used"),
    ],
)
def test_files_when_they_cannot_be_used_then_the_setting_the_file_and_the_remedy_are_named(
    tmp_path: Path, change: dict[str, str], why: str
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("broker")
    torn = tmp_path / "torn.pem"
    torn.write_bytes(files.certificate.read_bytes()[:100])
    named = {
        "certificate": str(files.certificate),
        "key": str(files.key),
        "other": str(authority.issue("other").key),
        "locked": str(authority.issue("locked", password=b"secret").key),
        "torn": str(torn),
    }
    given = {"certificate_path": named["certificate"], "key_path": named["key"]}
    with pytest.raises(UnusableTls, match=why):
        ServerTls(**(given | {key: named.get(name, name) for key, name in change.items()})).context()  # type: ignore[arg-type]


def test_certificate_when_it_has_expired_or_will_then_is_told_once_and_again_when_that_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    now = [time.time()]
    log = ExpiryLog(server_tls(authority.issue("broker", expired=True)), now=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        log.look()
        log.look()
        now[0] += 86_400
        log.look()
        authority.issue("broker")
        now[0] -= 40 * 86_400
        log.look()
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition("broker.pem ")[2].partition(" remedy")[0] for text in told] == [
        "has expired 1 days ago",
        "has expired 2 days ago",
    ]
    assert all("replace the file and its key" in text for text in told)


# --- clients


@pytest.mark.parametrize(
    ("offered", "asked", "spoken"),
    [
        (["TLSv1.3", "TLSv1.2"], ssl.TLSVersion.TLSv1_3, "TLSv1.3"),
        (["TLSv1.3", "TLSv1.2"], ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
        (["TLSv1.3", "TLSv1.2"], ssl.TLSVersion.TLSv1_1, None),
        (["TLSv1.2"], ssl.TLSVersion.TLSv1_3, None),
        (["TLSv1.3"], ssl.TLSVersion.TLSv1_2, None),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
async def test_version_when_not_offered_then_is_refused(
    tmp_path: Path, offered: list[str], asked: ssl.TLSVersion, spoken: str | None
) -> None:
    authority = Authority(tmp_path)
    context = trusting(authority)
    context.set_ciphers("ALL:@SECLEVEL=0")  # a client that would still speak 1.1
    context.minimum_version = context.maximum_version = asked
    async with listening(server_tls(authority.issue("broker"), offer=plan_offer(offered))) as (_, port):
        if spoken is None:
            await refused(port, context)
            return
        visitor = await visit(port, context)
        assert visitor.tls.version() == spoken
        assert await asyncio.to_thread(visitor.hears)
        visitor.close()


async def test_cipher_when_named_then_is_the_one_that_is_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    offer = plan_offer(ciphers=["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"])
    async with listening(server_tls(authority.issue("broker"), offer=offer)) as (_, port):
        visitor = await visit(port, trusting(authority))
        used = visitor.tls.cipher()
        visitor.close()
        assert used is not None
        assert used[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"


@pytest.mark.parametrize(
    ("required", "shown", "let_in"),
    [
        (True, "ours", True),
        (True, None, False),
        (True, "stranger", False),
        (True, "expired", False),
        (False, "ours", True),
        (False, None, True),
        (False, "stranger", False),
        (False, "expired", False),
    ],
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_client_when_certificates_are_asked_for_then_a_trusted_one_counts(
    tmp_path: Path, required: bool, shown: str | None, let_in: bool, version: ssl.TLSVersion
) -> None:
    authority = Authority(tmp_path / "ours")
    certificates = {
        None: None,
        "ours": authority.issue("client"),
        "stranger": Authority(tmp_path / "theirs").issue("client"),
        "expired": authority.issue("old", expired=True),
    }
    tls = server_tls(
        authority.issue("broker"), trust_certs_path=str(authority.file), client_certificate_required=required
    )
    context = trusting(authority, certificates[shown])
    context.minimum_version = context.maximum_version = version
    async with listening(tls) as (_, port):
        if let_in:
            assert await serial_at(port, context)
        else:
            await refused(port, context)


def test_garbage_when_sent_then_others_do_not_notice_and_the_log_says_so_once(
    tmp_path: Path,
    run: Callable[[Coroutine[Any, Any, None]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    authority = Authority(tmp_path)

    async def play() -> None:
        async with listening(server_tls(authority.issue("broker"))) as (_, port):
            visitor = await visit(port, trusting(authority))
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5000, b"\x16\x03\x01\xff\xff" + b"x" * 500, b""):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(garbage)
                if garbage[:1] != b"\x16":  # a record that is announced and never comes is waited for
                    writer.write_eof()
                    with suppress(ConnectionError):
                        await reader.read()
                writer.close()
                assert await asyncio.to_thread(visitor.hears)
            visitor.close()

    with caplog.at_level(logging.WARNING, "interpulse"):
        run(play())
    (record,) = [each for each in caplog.records if "handshake" in each.getMessage()]
    assert record.getMessage() == "TLS handshake failed reason=http_request count=1"


def test_handshake_when_late_then_hung_up_on(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_module, "_HANDSHAKE_SECONDS", 0.2)
    authority = Authority(tmp_path)

    async def play() -> None:
        async with listening(server_tls(authority.issue("broker"))) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x16\x03\x01\x00\x80")  # a record that is announced and never comes
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    run(play())


# --- files that change


def test_certificate_when_replaced_then_new_connections_get_it_and_those_open_stay(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("broker")

    async def play() -> None:
        async with listening(server_tls(files)) as (listener, port):
            context = trusting(authority)
            before = await visit(port, context)
            await listener.refresh()
            assert await serial_at(port, context) == before.serial

            authority.issue("broker")
            await listener.refresh()
            renewed = await serial_at(port, context)
            assert renewed != before.serial
            assert await asyncio.to_thread(before.hears)

            files.key.write_bytes(authority.issue("other").key.read_bytes())  # half of a replacement
            await listener.refresh()
            assert await serial_at(port, context) == renewed
            files.certificate.write_bytes((tmp_path / "other.pem").read_bytes())
            await listener.refresh()
            assert await serial_at(port, context) not in (renewed, before.serial)
            assert await asyncio.to_thread(before.hears)
            before.close()

    run(play())


def test_connects_when_certificates_are_replaced_meanwhile_then_none_is_refused(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    authority = Authority(tmp_path)
    files, over = authority.issue("broker"), threading.Event()

    def connect_all_the_time(port: int) -> int:
        count = 0
        while not over.is_set() or not count:
            visitor = Visitor(port, trusting(authority))
            assert visitor.hears()
            visitor.close()
            count += 1
        return count

    async def play() -> None:
        async with listening(server_tls(files)) as (listener, port):
            visits = asyncio.create_task(asyncio.to_thread(connect_all_the_time, port))
            for _ in range(20):
                authority.issue("broker")
                await listener.refresh()
            over.set()
            assert await visits > 0

    run(play())


def test_listener_when_closed_while_it_reads_new_files_then_stays_closed(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("broker")

    async def play() -> None:
        async with listening(server_tls(files)) as (listener, port):
            authority.issue("broker")
            refreshing = asyncio.create_task(listener.refresh())
            await asyncio.sleep(0)
            listener.close()
            await refreshing
            with pytest.raises(ConnectionRefusedError):
                await visit(port, trusting(authority))

    run(play())


async def test_authority_of_clients_when_replaced_then_nobody_of_the_earlier_one_gets_in(tmp_path: Path) -> None:
    """Not even by a session that is resumed."""
    earlier, later = Authority(tmp_path / "earlier"), Authority(tmp_path / "later")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(earlier.file, trusted)
    tls = server_tls(earlier.issue("broker"), trust_certs_path=str(trusted), client_certificate_required=True)
    context = trusting(earlier, earlier.issue("client"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # whose sessions are known when the handshake ends
    async with listening(tls) as (listener, port):
        visitor = await visit(port, context)
        assert await asyncio.to_thread(visitor.hears)
        session = visitor.tls.session
        assert session is not None

        def resume() -> bool:
            plain = socket.create_connection(("127.0.0.1", port), 30)
            with plain, context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as resumed:
                resumed.sendall(b"word")
                return resumed.session_reused is True and resumed.recv(100) == b"word"

        assert await asyncio.to_thread(resume)
        shutil.copy(later.file, trusted)
        await listener.refresh()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(resume)
        assert await asyncio.to_thread(visitor.hears), "who is inside stays"
        visitor.close()
