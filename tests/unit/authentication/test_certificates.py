"""The role of a client that shows a certificate: its common name, and nothing that the client says."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity, PeerCertificate
from interpulse.authentication.certificates import CertificateProvider, peer_certificate
from interpulse.authentication.tokens import TokenProvider, TokenVerifier
from tests.support.tokens import SECRET, signed

APP = PeerCertificate("app")


def authentication(anonymous_role: str = "") -> Authentication:
    providers = [TokenProvider(TokenVerifier(SECRET)), CertificateProvider()]
    return Authentication(providers, anonymous_role=anonymous_role)


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
    shown = peer_certificate(certificate)
    assert (shown.common_name if shown else "") == name


async def test_certificate_when_it_ends_then_its_role_does_and_an_open_connection_cannot_renew_it() -> None:
    subject = ((("commonName", "app"),),)
    shown = peer_certificate({"subject": subject, "notAfter": "Jan  1 00:00:10 1970 GMT"})
    identity = await authentication().authenticate("tls", b"", certificate=shown)
    assert identity == Identity("app", 10.0, renewable=False)
    assert (identity.has_ended(9.0), identity.has_ended(10.0)) == (False, True)


async def test_client_when_it_showed_a_certificate_then_is_who_that_says() -> None:
    asked = authentication()
    assert await asked.authenticate("tls", b"", certificate=APP) == Identity("app", renewable=False)
    assert await asked.authenticate("tls", b"admin", certificate=APP) == Identity("app", renewable=False)
    assert await asked.authenticate_http({}, certificate=APP) == Identity("app", renewable=False)
    assert asked.meter.successes == {("tls", "tls"): 3}


@pytest.mark.parametrize("anonymous_role", ["", "guest"])
async def test_client_when_it_showed_none_then_what_it_says_is_worth_nothing(anonymous_role: str) -> None:
    asked = authentication(anonymous_role)
    with pytest.raises(BadCredentials, match="Failed to authenticate") as refusal:
        await asked.authenticate("tls", b"admin")
    assert "showed no certificate" in refusal.value.detail


async def test_call_when_it_has_a_token_and_a_certificate_then_the_token_counts() -> None:
    headers = {"Authorization": f"Bearer {signed(sub='bearer')}"}
    assert await authentication().authenticate_http(headers, certificate=APP) == Identity("bearer")
    with pytest.raises(BadCredentials):
        await authentication().authenticate_http({"Authorization": "Bearer abc"}, certificate=APP)


async def test_certificate_when_its_provider_is_not_offered_then_is_worth_nothing() -> None:
    tokens_only = Authentication([TokenProvider(TokenVerifier(SECRET))])
    for attempt in (
        lambda: tokens_only.authenticate("tls", b"", certificate=APP),
        lambda: tokens_only.authenticate_http({}, certificate=APP),
    ):
        with pytest.raises(BadCredentials):
            await attempt()
