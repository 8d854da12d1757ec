"""Certificates for a trial of TLS: a private authority and the broker's certificate, signed by it.

The files are in one directory, which only its owner may enter. The authority never changes, so that clients keep
trusting it. The broker's certificate is replaced when its names do not suffice or it expires soon.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from interpulse.rules.tls import DAYS_OF_NOTICE

_AUTHORITY_DAYS: Final = 3650
_BROKER_DAYS: Final = 397
"""The longest validity that browsers accept."""
_EARLIER: Final = datetime.timedelta(hours=1)
"""Tolerance for client clocks that are behind."""


@dataclass(frozen=True, slots=True)
class TrialAuthority:
    """The authority in one directory. Raises OSError if it cannot be written, ValueError for foreign files."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The path of the authority's certificate, which clients trust."""
        return self.directory / "authority.pem"

    @property
    def certificate(self) -> Path:
        return self.directory / "broker.pem"

    @property
    def key(self) -> Path:
        return self.directory / "broker.key"

    @property
    def _authority_key(self) -> Path:
        return self.directory / "authority.key"

    def prepare(self, hosts: Iterable[str], now: datetime.datetime) -> None:
        """Create the missing files. The broker's certificate covers these names and addresses."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        if not (self.authority.exists() and self._authority_key.exists()):
            self._make_authority(now)
        wanted = sorted(set(hosts))
        if not self._suffices(wanted, now):
            self._make_certificate(wanted, now)

    def _make_authority(self, now: datetime.datetime) -> None:
        key = generate_private_key(SECP256R1())
        name = _name("Interpulse trial authority")
        builder = _builder(name, name, key, key, now, _AUTHORITY_DAYS)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        _write_key(self._authority_key, key)
        _write(self.authority, builder.sign(key, SHA256()).public_bytes(Encoding.PEM))
        self.certificate.unlink(missing_ok=True)

    def _make_certificate(self, hosts: list[str], now: datetime.datetime) -> None:
        signer = load_pem_private_key(self._authority_key.read_bytes(), password=None)
        if not isinstance(signer, EllipticCurvePrivateKey):
            raise ValueError(f"{self._authority_key} is not a key of this program; remove {self.directory}")
        issuer = x509.load_pem_x509_certificate(self.authority.read_bytes())
        key = generate_private_key(SECP256R1())
        builder = _builder(_name("interpulse"), issuer.subject, key, signer, now, _BROKER_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), False)
        self.certificate.unlink(missing_ok=True)  # an old certificate beside a new key would go unnoticed
        _write_key(self.key, key)
        _write(self.certificate, builder.sign(signer, SHA256()).public_bytes(Encoding.PEM))

    def _suffices(self, hosts: list[str], now: datetime.datetime) -> bool:
        if not (self.certificate.exists() and self.key.exists()):
            return False
        certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        near = now + datetime.timedelta(days=DAYS_OF_NOTICE)
        return all(_general_name(host) in names for host in hosts) and certificate.not_valid_after_utc > near


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    signer: EllipticCurvePrivateKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    """Return the common part of both certificates, with the key identifiers that strict clients require."""
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority_id, critical=False)
    )


def _write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically. Only its owner can ever read it."""
    new = path.with_suffix(f"{path.suffix}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)
