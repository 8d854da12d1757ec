"""The role of a client that shows a certificate: its common name, and nothing that the client says."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.access.authentication import Authentication, BadCredentials, Identity
from interpulse.broker.access.certificates import CertificateProvider, common_name
from interpulse.broker.access.tokens import TokenProvider, TokenVerifier
from tests.support.tokens import SECRET, signed


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
    assert common_name(certificate) == name


def test_client_when_it_showed_a_certificate_then_is_who_that_says() -> None:
    asked = authentication()
    assert asked.authenticate("tls", b"", common_name="app") == Identity("app")
    assert asked.authenticate("tls", b"admin", common_name="app") == Identity("app")
    assert asked.authenticate_http({}, common_name="app") == Identity("app")
    assert asked.meter.successes == {("tls", "tls"): 3}


@pytest.mark.parametrize("anonymous_role", ["", "guest"])
def test_client_when_it_showed_none_then_what_it_says_is_worth_nothing(anonymous_role: str) -> None:
    asked = authentication(anonymous_role)
    with pytest.raises(BadCredentials, match="Failed to authenticate") as refusal:
        asked.authenticate("tls", b"admin")
    assert "showed no certificate" in refusal.value.detail


def test_call_when_it_has_a_token_and_a_certificate_then_the_token_counts() -> None:
    headers = {"Authorization": f"Bearer {signed(sub='bearer')}"}
    assert authentication().authenticate_http(headers, common_name="app") == Identity("bearer")
    with pytest.raises(BadCredentials):
        authentication().authenticate_http({"Authorization": "Bearer abc"}, common_name="app")


def test_certificate_when_its_provider_is_not_offered_then_is_worth_nothing() -> None:
    tokens_only = Authentication([TokenProvider(TokenVerifier(SECRET))])
    for attempt in (
        lambda: tokens_only.authenticate("tls", b"", common_name="app"),
        lambda: tokens_only.authenticate_http({}, common_name="app"),
    ):
        with pytest.raises(BadCredentials):
            attempt()
