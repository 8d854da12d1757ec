"""Encrypted connections: the certificate is checked unless told otherwise."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interpulse.client.config import ClientConfig
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import NotConnected
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate for 127.0.0.1 in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "broker.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def connect(url: str, tls: TlsOptions | None) -> None:
    config = ClientConfig(url, tls=tls, connect_timeout_ms=60_000)
    connection = await Connection.open(config.url.brokers[0], config)
    assert connection.is_open
    connection.close()
    await connection.closed()


async def test_certificate_when_trusted_then_the_connection_opens(certificate: Path) -> None:
    async with ScriptedBroker(tls=server_context(certificate)) as broker:
        assert broker.url.startswith("pulsar+ssl://")
        await connect(broker.url, TlsOptions(trust_certs_path=str(certificate)))
        await connect(broker.url, TlsOptions(insecure_allowed=True))


async def test_certificate_when_unknown_then_not_connected(certificate: Path) -> None:
    async with ScriptedBroker(tls=server_context(certificate)) as broker:
        with pytest.raises(NotConnected, match="certificate"):
            await connect(broker.url, None)


async def test_certificate_when_for_another_host_then_not_connected_unless_names_are_ignored(certificate: Path) -> None:
    async with ScriptedBroker(tls=server_context(certificate)) as broker:
        other_name = broker.url.replace("127.0.0.1", "localhost")
        with pytest.raises(NotConnected):
            await connect(other_name, TlsOptions(trust_certs_path=str(certificate)))
        await connect(other_name, TlsOptions(trust_certs_path=str(certificate), hostname_verified=False))


async def test_port_when_it_answers_no_handshake_then_the_error_says_which_address_it_has() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        url = f"pulsar+ssl://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(NotConnected, match=r"the port answers no TLS handshake: without TLS .* pulsar://"):
            await connect(url, None)


async def test_port_when_it_has_no_tls_then_the_error_says_so() -> None:
    with StubWeb() as web, pytest.raises(NotConnected, match=r"the port has no TLS: .* begins with pulsar://"):
        await connect(web.url.replace("http:", "pulsar+ssl:"), None)
