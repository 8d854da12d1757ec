"""Authentication by the certificate that a client showed in the handshake, which verified it.

One of its names is the role, or rules derive the role from the name. Clients send nothing else.

Rules have the notation of Apache Kafka (PIP-485, KIP-371). ``RULE:pattern/replacement/[LU]``: a pattern that matches
the whole name, and the role made of its groups, in lower or upper case if the rule asks for it. ``DEFAULT``: the name
itself. The first matching rule decides. Patterns are those of RE2, so that no name takes long to match.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused

_DEFAULT: Final = "DEFAULT"
_BETWEEN_RULES: Final = re.compile(r"\s*,\s*(?=RULE:|DEFAULT\s*(?:,|$))")
"""Patterns contain commas too, such as those between the parts of a distinguished name."""
_RULE: Final = re.compile(r"RULE:(?P<pattern>(?:\\.|[^\\])+)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)")
"""The last two unescaped slashes end pattern and replacement: patterns may contain slashes, as URIs do."""
_PIECE: Final = re.compile(r"\\(?P<literal>.)|\$(?P<group>[0-9]+)|(?P<text>[^\\$]+)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, "": str}

_COMMON_NAME: Final = "CN"


class UnusableRules(ValueError):
    """The rules cannot be read. ``str()`` names the rule and the problem."""


class PrincipalMapping:
    """An ordered list of rules."""

    def __init__(self, text: str) -> None:
        """Parse the rules. Without rules the name is the role. Raise UnusableRules."""
        rules = _BETWEEN_RULES.split(text.strip()) if text.strip() else [_DEFAULT]
        self._rules = [_rule(rule) for rule in rules]

    def role(self, name: str) -> str | None:
        """Return the role of a name; None if no rule matches, or if the matching rule leaves it empty."""
        for rule in self._rules:
            role = rule(name)
            if role is not None:
                return role or None
        return None


def _rule(text: str) -> Callable[[str], str | None]:
    if text == _DEFAULT:
        return str
    parts = _RULE.fullmatch(text)
    if parts is None:
        raise UnusableRules(f"{text!r} is neither DEFAULT nor RULE:pattern/replacement/, with L or U at its end")
    pattern, in_case = _pattern(parts["pattern"]), _CASES[parts["case"]]
    pieces = _pieces(text, parts["replacement"], pattern.groups)

    def role(name: str) -> str | None:
        match = pattern.fullmatch(name)
        if match is None:
            return None
        return in_case("".join((match.group(piece) or "") if isinstance(piece, int) else piece for piece in pieces))

    return role


def _pattern(text: str) -> Any:
    import re2  # loaded with the first rule: most programs have none

    options = re2.Options()
    options.log_errors = False  # the error has the text; the library would write it to stderr
    try:
        return re2.compile(text, options)
    except re2.error as error:
        (reason,) = error.args
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise UnusableRules(f"the pattern {text!r} is none of RE2: {shown}") from None


def _pieces(rule: str, replacement: str, groups: int) -> list[str | int]:
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        piece = _PIECE.match(replacement, at)
        if piece is None or (piece["group"] and int(piece["group"]) > groups):
            raise UnusableRules(
                f"{rule!r}: {replacement[at:]!r} in the replacement names none of the {groups} groups of the pattern; "
                r"a dollar sign is written \$"
            )
        pieces.append(int(piece["group"]) if piece["group"] else piece["literal"] or piece["text"])
        at = piece.end()
    return pieces


class CertificateProvider:
    """Pulsar's AuthenticationProviderTls, with the sources and rules of PIP-485."""

    name = "tls"
    method = "tls"

    def __init__(self, source: str = _COMMON_NAME, mapping: PrincipalMapping | None = None) -> None:
        """``source`` is one of `ProviderSettings.tls_cert_identity_source`. Without a mapping the name is the role."""
        self._source = source
        self._mapping = mapping or PrincipalMapping("")

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        """Return the role of the certificate, until it expires. Sent credentials are ignored."""
        if certificate is None:
            raise Refused("INVALID_CERTS", "the connection is not inside TLS, or its client showed no certificate")
        name = self._name(certificate)
        role = self._mapping.role(name)
        if role is None:
            raise Refused(
                "NO_MAPPING_RULE_MATCHED",
                f"no rule of tlsAuthPrincipalMappingRules makes a role of {name[:200]!r}, the {self._source} of the "
                "certificate",
            )
        return Identity(role, certificate.expires_at, renewable=False)

    def _name(self, certificate: PeerCertificate) -> str:
        if self._source == _COMMON_NAME:
            name = certificate.common_name
        else:
            from interpulse.authentication.certificate_names import certificate_name  # loaded only where it is needed

            try:
                name = certificate_name(certificate.der, self._source)
            except ValueError as error:
                raise Refused("INVALID_CERTS", f"the names of the certificate cannot be read: {error}") from None
        if not name:
            reason = "NO_SAN_OF_TYPE" if self._source.startswith("SAN:") else "INVALID_CN"
            raise Refused(reason, f"the certificate has no {self._source}, which tlsCertIdentitySource asks for")
        return name


class _Encrypted(Protocol):
    """A connection, or a request that came over it."""

    def get_extra_info(self, name: str, default: Any = None) -> Any: ...


def peer_certificate(connection: _Encrypted) -> PeerCertificate | None:
    """Return the checked certificate of a client, with its most specific common name ("" = none); None without one."""
    shown = connection.get_extra_info("peercert")
    if not shown:  # a certificate that was not verified is empty here
        return None
    names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    end = shown.get("notAfter")
    der = connection.get_extra_info("ssl_object").getpeercert(True)
    expires_at = float(ssl.cert_time_to_seconds(end)) if end else None
    return PeerCertificate(str(names[-1]) if names else "", expires_at, der)
