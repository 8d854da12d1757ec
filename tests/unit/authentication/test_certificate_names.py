"""The subject of a certificate as `X500Principal.getName()` of OpenJDK 17 wrote it for the same certificates."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameAttribute as Attribute
from cryptography.x509 import NameOID as Oid
from cryptography.x509.name import _ASN1Type as Kind

from interpulse.authentication.certificate_names import certificate_name

KEY = ec.generate_private_key(ec.SECP256R1())
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def certificate(*parts: list[Attribute]) -> bytes:
    subject = x509.Name([x509.RelativeDistinguishedName(part) for part in parts])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(BEGIN)
        .not_valid_after(BEGIN + datetime.timedelta(days=1))
    )
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


def of(common_name: str) -> list[Attribute]:
    return [Attribute(Oid.COMMON_NAME, common_name)]


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        pytest.param(
            [
                [Attribute(Oid.COUNTRY_NAME, "US")],
                [Attribute(Oid.ORGANIZATION_NAME, "Acme")],
                [Attribute(Oid.ORGANIZATIONAL_UNIT_NAME, "payments")],
                of("alice"),
            ],
            "CN=alice,OU=payments,O=Acme,C=US",
            id="the last part first",
        ),
        pytest.param(
            [of('a,b=c+d<e>f#g;h"i\\j')], 'CN=a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j', id="marks of the notation"
        ),
        pytest.param([of("  two spaces  ")], "CN=\\ \\ two spaces\\ \\ ", id="spaces at the ends"),
        pytest.param([of("#hash")], "CN=\\#hash", id="#"),
        pytest.param([of("Jürgen 日本")], "CN=Jürgen 日本", id="not ASCII"),
        pytest.param([of("nul\0inside")], "CN=nul\\00inside", id="NUL"),
        pytest.param(
            [[*of("x"), Attribute(Oid.ORGANIZATIONAL_UNIT_NAME, "y")]], "CN=x+OU=y", id="two attributes in a part"
        ),
        pytest.param(
            [[Attribute(Oid.EMAIL_ADDRESS, "a@b.c", Kind.IA5String)], of("app")],
            "CN=app,1.2.840.113549.1.9.1=#16056140622e63",
            id="an attribute without a keyword",
        ),
        pytest.param(
            [
                [Attribute(Oid.SERIAL_NUMBER, "42")],
                [Attribute(Oid.TITLE, "Dr")],
                [Attribute(Oid.STREET_ADDRESS, "Main 1")],
                [Attribute(Oid.STATE_OR_PROVINCE_NAME, "CA")],
                [Attribute(Oid.LOCALITY_NAME, "SF")],
                [Attribute(Oid.DOMAIN_COMPONENT, "com", Kind.IA5String)],
                [Attribute(Oid.USER_ID, "u1")],
            ],
            "UID=u1,DC=com,L=SF,ST=CA,STREET=Main 1,2.5.4.12=#0c024472,2.5.4.5=#13023432",
            id="all keywords",
        ),
        pytest.param([[Attribute(Oid.GIVEN_NAME, "x" * 200)]], "2.5.4.42=#0c81c8" + "78" * 200, id="a long value"),
        pytest.param([], "", id="an empty subject"),
    ],
)
def test_subject_when_written_then_is_what_java_writes(parts: list[list[Attribute]], name: str) -> None:
    assert certificate_name(certificate(*parts), "DN") == name
