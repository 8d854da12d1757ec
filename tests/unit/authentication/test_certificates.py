"""The role of a client that shows a certificate: its common name, and nothing that the client says."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity, PeerCertificate
from interpulse.authentication.certificates import (
    CertificateProvider,
    PrincipalMapping,
    UnusableRules,
    peer_certificate,
)
from interpulse.authentication.tokens import TokenProvider
from tests.support.tokens import SECRET, signed

DN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
SPIFFE = "spiffe://acme.com/ns/Payments/sa/checkout"
KAFKA = ",".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
        "DEFAULT",
    ]
)
PIP = r"RULE:^spiffe://acme\.com/ns/([^/]+)/sa/([^/]+)$/$1__$2/L,DEFAULT"
ESCAPED = r"RULE:^spiffe:\/\/acme\.com\/ns\/([^\/]+)\/sa\/([^\/]+)$/$1__$2/L"
LAST = "RULE:^(.*)$/$1/"

APP = PeerCertificate("app")


@pytest.mark.parametrize(
    ("rules", "name", "role"),
    [
        pytest.param("", DN, DN, id="no rules"),
        pytest.param("DEFAULT", DN, DN, id="DEFAULT"),
        pytest.param(PIP, SPIFFE, "payments__checkout", id="PIP-485, example"),
        pytest.param(ESCAPED, SPIFFE, "payments__checkout", id="slashes escaped as in Kafka"),
        pytest.param(KAFKA, DN, "Duke", id="KIP-371, rule 1"),
        pytest.param(KAFKA, "CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme", id="KIP-371, rule 2"),
        pytest.param(KAFKA, "cn=Duke,ou=JavaSoft,o=Sun", "duke", id="KIP-371, rule 3"),
        pytest.param(KAFKA, "OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun", id="KIP-371, rule 4"),
        pytest.param("RULE:^CN=(.+?),.*$/$1/U", DN, "DUKE", id="upper case"),
        pytest.param("RULE:CN=(Duke|Sun),OU=.*/$1/ , DEFAULT", DN, "Duke", id="spaces around the comma"),
        pytest.param("RULE:Duke/admin/", DN, None, id="the whole name has to match"),
        pytest.param("RULE:.*/one/,RULE:.*/two/", DN, "one", id="the first rule decides"),
        pytest.param("RULE:^CN=Nobody,.*$/x/", DN, None, id="no rule matches"),
        pytest.param("RULE:^CN=Duke(x?),.*$/$1/,DEFAULT", DN, None, id="an empty role is none"),
        pytest.param(LAST, "admin\n", None, id="a line end is part of the name"),
        pytest.param("RULE:(a)|b/x$1/", "b", "x", id="a group without a match"),
        pytest.param(r"RULE:(.+)/\$1\/$1\\/", "a", "$1/a\\", id="escapes in the replacement"),
        pytest.param(r"RULE:(.{1,2}),(.+)/$2,$1/", "ab,c", "c,ab", id="commas inside a rule"),
    ],
)
def test_rules_when_a_name_is_mapped_then_the_first_that_matches_makes_the_role(
    rules: str, name: str, role: str | None
) -> None:
    assert PrincipalMapping(rules).role(name) == role


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("default", "'default' is neither DEFAULT nor RULE:pattern/replacement/"),
        ("RULE:abc", "'RULE:abc' is neither"),
        ("RULE:a/b", "neither"),
        ("RULE:a/b/X", "neither"),
        ("RULE:/b/", "neither"),
        ("DEFAULT,", "'DEFAULT,' is neither"),
        ("DEFAULT DEFAULT", "neither"),
        ("RULE:a/b/LU", "neither"),
        ("RULE:(/b/", r"the pattern '\(' is none of RE2: .*"),
        ("RULE:(?=a)/b/", r"the pattern '\(\?=a\)' is none of RE2"),
        ("RULE:a/$1/", r"names none of the 0 groups"),
        ("RULE:(a)/$2/", r"'\$2' in the replacement names none of the 1 groups"),
        ("RULE:(a)/$x/", r"a dollar sign is written \\\$"),
    ],
)
def test_rules_when_invalid_then_refused(rules: str, why: str) -> None:
    with pytest.raises(UnusableRules, match=why):
        PrincipalMapping(rules)


class Shown:
    """A connection whose client showed a certificate, as asyncio has it."""

    def __init__(self, certificate: Any) -> None:
        self._certificate = certificate

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peercert": self._certificate, "ssl_object": self}.get(name, default)

    def getpeercert(self, binary_form: bool) -> bytes:
        assert binary_form
        return b"DER"


def certificate(common_name: str = "", names: Sequence[x509.GeneralName] = ()) -> PeerCertificate:
    key, begin = ec.generate_private_key(ec.SECP256R1()), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    subject = [x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COUNTRY_NAME, "DE"), *subject]))
        .issuer_name(x509.Name(subject))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=1))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return PeerCertificate(common_name, der=builder.sign(key, SHA256()).public_bytes(Encoding.DER))


def authentication(anonymous_role: str = "") -> Authentication:
    providers = [TokenProvider(SECRET), CertificateProvider()]
    return Authentication(providers, anonymous_role=anonymous_role)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, ""),
        ({}, ""),
        ({"subject": ()}, ""),
        ({"subject": ((("organizationName", "acme"),),)}, ""),
        ({"subject": ((("commonName", "app"),),)}, "app"),
        ({"subject": ((("countryName", "DE"),), (("organizationName", "CN=admin"), ("commonName", "app")))}, "app"),
        ({"subject": ((("commonName", "unit"),), (("commonName", "app"),))}, "app"),
        ({"subject": ((("commonName", "a,CN=admin"),),)}, "a,CN=admin"),
    ],
)
def test_name_when_read_from_a_certificate_then_is_the_most_specific_one(certificate: Any, name: str) -> None:
    shown = peer_certificate(Shown(certificate))
    assert (shown.common_name if shown else "") == name


async def test_certificate_when_expired_then_role_ends_without_renewal() -> None:
    subject = ((("commonName", "app"),),)
    shown = peer_certificate(Shown({"subject": subject, "notAfter": "Jan  1 00:00:10 1970 GMT"}))
    identity = await authentication().authenticate("tls", b"", certificate=shown)
    assert identity == Identity("app", 10.0, renewable=False)
    assert (identity.has_ended(9.0), identity.has_ended(10.0)) == (False, True)


async def test_client_when_it_has_a_certificate_then_its_name_is_the_role() -> None:
    asked = authentication()
    assert await asked.authenticate("tls", b"", certificate=APP) == Identity("app", renewable=False)
    assert await asked.authenticate("tls", b"admin", certificate=APP) == Identity("app", renewable=False)
    assert await asked.authenticate_http({}, certificate=APP) == Identity("app", renewable=False)
    assert asked.meter.successes == {("tls", "tls"): 3}


@pytest.mark.parametrize("anonymous_role", ["", "guest"])
async def test_client_when_it_has_no_certificate_then_sent_names_are_ignored(anonymous_role: str) -> None:
    asked = authentication(anonymous_role)
    with pytest.raises(BadCredentials, match="Failed to authenticate") as refusal:
        await asked.authenticate("tls", b"admin")
    assert "showed no certificate" in refusal.value.detail


async def test_call_when_it_has_a_token_and_a_certificate_then_the_token_counts() -> None:
    headers = {"Authorization": f"Bearer {signed(sub='bearer')}"}
    assert await authentication().authenticate_http(headers, certificate=APP) == Identity("bearer")
    with pytest.raises(BadCredentials):
        await authentication().authenticate_http({"Authorization": "Bearer abc"}, certificate=APP)


async def test_certificate_when_its_provider_is_off_then_ignored() -> None:
    tokens_only = Authentication([TokenProvider(SECRET)])
    for attempt in (
        lambda: tokens_only.authenticate("tls", b"", certificate=APP),
        lambda: tokens_only.authenticate_http({}, certificate=APP),
    ):
        with pytest.raises(BadCredentials):
            await attempt()


URI, OTHER = x509.UniformResourceIdentifier("spiffe://acme/sa/app"), x509.UniformResourceIdentifier("spiffe://acme/2")
MAIL, HOST = x509.RFC822Name("app@acme.com"), x509.DNSName("app.acme.com")


@pytest.mark.parametrize(
    ("source", "rules", "shown", "role"),
    [
        ("CN", "", certificate("app", [URI]), "app"),
        ("CN", "RULE:^(.*)$/$1/U", certificate("app"), "APP"),
        ("DN", "", certificate("app"), "CN=app,C=DE"),
        ("DN", "RULE:^CN=([^,]+),.*$/$1/", certificate("app"), "app"),
        ("SAN:URI", "", certificate("", [HOST, URI, OTHER]), "spiffe://acme/sa/app"),
        ("SAN:URI", "RULE:^spiffe://acme/sa/([^/]+)$/$1/", certificate("admin", [URI]), "app"),
        ("SAN:DNS", "", certificate("", [URI, HOST]), "app.acme.com"),
        ("SAN:EMAIL", "", certificate("", [HOST, MAIL]), "app@acme.com"),
    ],
)
async def test_source_when_the_certificate_has_it_then_makes_the_role(
    source: str, rules: str, shown: PeerCertificate, role: str
) -> None:
    asked = Authentication([CertificateProvider(source, PrincipalMapping(rules))])
    assert (await asked.authenticate("tls", b"", certificate=shown)).role == role
    assert (await asked.authenticate_http({}, certificate=shown)).role == role


@pytest.mark.parametrize(
    ("source", "rules", "shown", "reason"),
    [
        ("CN", "", None, "INVALID_CERTS"),
        ("CN", "", certificate("", [URI]), "INVALID_CN"),
        ("SAN:URI", "", certificate("app"), "NO_SAN_OF_TYPE"),
        ("SAN:URI", "", certificate("app", [HOST, MAIL]), "NO_SAN_OF_TYPE"),
        ("SAN:DNS", "DEFAULT", certificate("app", [URI]), "NO_SAN_OF_TYPE"),
        ("SAN:URI", "RULE:^spiffe://other/(.+)$/$1/", certificate("app", [URI]), "NO_MAPPING_RULE_MATCHED"),
        ("CN", "RULE:^ap(x?)p$/$1/", certificate("app"), "NO_MAPPING_RULE_MATCHED"),
        ("DN", "", PeerCertificate("app", der=b"garbage"), "INVALID_CERTS"),
    ],
)
@pytest.mark.parametrize("anonymous_role", ["", "guest"])
async def test_certificate_when_it_makes_no_role_then_is_refused_and_counted_by_its_reason(
    source: str, rules: str, shown: PeerCertificate | None, reason: str, anonymous_role: str
) -> None:
    provider = CertificateProvider(source, PrincipalMapping(rules))
    asked = Authentication([provider], anonymous_role=anonymous_role)
    with pytest.raises(BadCredentials):
        await asked.authenticate("tls", b"", certificate=shown)
    if shown is not None:
        with pytest.raises(BadCredentials):
            await asked.authenticate_http({}, certificate=shown)
    assert asked.meter.failures == {("tls", "tls", reason): 1 if shown is None else 2}
