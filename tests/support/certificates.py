"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAY = datetime.timedelta(days=1)
_MAY_SIGN = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Certificate(NamedTuple):
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


@dataclass
class Authority:
    """Signs certificates, which lie in its directory; ``file`` is its own, to be trusted.

    They have what Python 3.13 asks for, which verifies strictly: identifiers of keys, and an authority's key usage.
    """

    directory: Path
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(self._signed(self._own_name, self._key, authority=True))

    @property
    def _own_name(self) -> str:
        return str(self.directory)[-64:]  # no longer in X.509, and two authorities must differ

    @property
    def file(self) -> Path:
        return self.directory / "authority.pem"

    def issue(
        self,
        common_name: str,
        *,
        names: Sequence[str] = (),
        password: bytes | None = None,
        expired: bool = False,
        workload: str = "",
    ) -> Certificate:
        """A certificate for a client of that name, or for a server on 127.0.0.1 and of these names; the key is in
        PKCS #8. Java's client makes a name of an address: it asks for ``localhost``. ``workload`` is a URI that names
        the client in place of the common name, as SPIFFE does: the subject stays empty.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        files = Certificate(self.directory / f"{common_name}.pem", self.directory / f"{common_name}.key")
        files.certificate.write_bytes(self._signed(common_name, key, names=names, expired=expired, workload=workload))
        files.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        return files

    def _signed(
        self,
        common_name: str,
        key: ec.EllipticCurvePrivateKey,
        *,
        names: Sequence[str] = (),
        authority: bool = False,
        expired: bool = False,
        workload: str = "",
    ) -> bytes:
        end = datetime.datetime.now(datetime.UTC) + (-_DAY if expired else _DAY)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        uris = [x509.UniformResourceIdentifier(workload)] if workload else []
        alternative = x509.SubjectAlternativeName([address, *map(x509.DNSName, names), *uris])
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]) if workload else _name(common_name))
            .issuer_name(_name(self._own_name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - 2 * _DAY)
            .not_valid_after(end)
            .add_extension(alternative, critical=bool(workload))  # RFC 5280: critical where the subject is empty
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if authority:
            builder = builder.add_extension(_MAY_SIGN, critical=True)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


async def until_replaced(urls: Sequence[str], before: Sequence[str], authority: Authority) -> None:
    """Wait until these addresses show other certificates than those with the serial numbers ``before``."""
    async with asyncio.timeout(60):
        while any([await serial(url, authority) in before for url in urls]):  # noqa: ASYNC110  # files tell nobody
            await asyncio.sleep(0.05)


async def serial(url: str, authority: Authority) -> str:
    """The serial number of the certificate that an address shows."""

    def look() -> str:
        context = ssl.create_default_context(cafile=str(authority.file))
        with (
            socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 30) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
        ):
            certificate = encrypted.getpeercert()
            assert certificate is not None
            return str(certificate["serialNumber"])

    return await asyncio.to_thread(look)
