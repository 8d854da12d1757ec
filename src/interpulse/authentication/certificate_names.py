"""The names in a certificate: its subject as Java writes it, and its alternative names (RFC 5280, 4.2.1.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

_KEYWORDS: Final = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
"""The attributes with a keyword in RFC 2253."""


def certificate_name(der: bytes, source: str) -> str:
    """Return the name that ``tlsCertIdentitySource`` selects, "" if the certificate has none.

    Of several alternative names of one type the first counts. Raise ValueError for names that cannot be read.
    """
    return _SOURCES[source](x509.load_der_x509_certificate(der))


def _distinguished_name(certificate: x509.Certificate) -> str:
    """Return the subject as Java's ``X500Principal.getName()`` does: after RFC 2253, the last part first."""
    return ",".join("+".join(map(_attribute, part)) for part in reversed(certificate.subject.rdns))


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or attribute.oid.dotted_string}=#{_encoded_value(attribute).hex()}"
    escaped = re.sub(r'[,=+<>#;"\\]', r"\\\g<0>", attribute.value).replace("\0", r"\00")
    text = escaped.strip(" \r")
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    spaces = [re.sub(r"[ \r]", r"\\\g<0>", some) for some in (escaped[:lead], escaped[lead + len(text) :])]
    return f"{keyword}={spaces[0]}{text}{spaces[1]}"


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """Return the value in the certificate's encoding: the part behind the type in a name of this attribute alone."""
    name = x509.Name([attribute]).public_bytes()
    attributes, _ = _split(name)
    pair, _ = _split(_split(attributes)[0])
    return _split(pair)[1]


def _split(der: bytes) -> tuple[bytes, bytes]:
    """Return the content of the first element, and the bytes behind it."""
    length, start = der[1], 2
    if length >= 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start])
    return der[start : start + length], der[start + length :]


def _first(kind: type[x509.UniformResourceIdentifier | x509.DNSName | x509.RFC822Name]) -> Callable[..., str]:
    def first(certificate: x509.Certificate) -> str:
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ""
        return next(iter(names.get_values_for_type(kind)), "")

    return first


_SOURCES: Final[Mapping[str, Callable[[x509.Certificate], str]]] = {
    "DN": _distinguished_name,
    "SAN:URI": _first(x509.UniformResourceIdentifier),
    "SAN:DNS": _first(x509.DNSName),
    "SAN:EMAIL": _first(x509.RFC822Name),
}
