"""Which versions and ciphers are offered, and what is said of a certificate that ends."""

from __future__ import annotations

import ssl

import pytest

from interpulse.rules.tls import TLS_VERSIONS, TlsOffer, expiry_notice, plan_offer

ALL_OF_1_3 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
JAVA, OPENSSL = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"
DAY = 86_400.0


@pytest.mark.parametrize(
    ("versions", "ciphers", "offered"),
    [
        (TLS_VERSIONS, [], (TLS_VERSIONS, TlsOffer().ciphers)),
        (["TLSv1.2"], [], (("TLSv1.2",), TlsOffer().ciphers)),
        (TLS_VERSIONS, [JAVA], (("TLSv1.2",), (OPENSSL,))),
        (TLS_VERSIONS, [OPENSSL], (("TLSv1.2",), (OPENSSL,))),
        (TLS_VERSIONS, ALL_OF_1_3, (("TLSv1.3",), ())),
        (TLS_VERSIONS, [*ALL_OF_1_3, JAVA], (TLS_VERSIONS, (OPENSSL,))),
        (["TLSv1.3"], [*ALL_OF_1_3, JAVA], (("TLSv1.3",), (OPENSSL,))),
    ],
)
def test_offer_when_versions_and_ciphers_are_given_then_holds_what_they_share(
    versions: list[str], ciphers: list[str], offered: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert plan_offer(versions, ciphers) == TlsOffer(*offered)


@pytest.mark.parametrize(
    ("versions", "ciphers", "why"),
    [
        (
            TLS_VERSIONS,
            ["TLS_RSA_WITH_AES_128_CBC_SHA"],
            "_CBC_SHA is not offered; offered are TLS_AES_128_GCM",
        ),
        (TLS_VERSIONS, [JAVA, ""], "is not offered"),
        (
            TLS_VERSIONS,
            ["TLS_AES_256_GCM_SHA384", JAVA],
            "all or none: add TLS_AES_128_GCM_SHA256, TLS_CHACHA20",
        ),
        (["TLSv1.3"], [JAVA], "none of these ciphers belongs to TLSv1.3"),
        (["TLSv1.2"], ALL_OF_1_3, "none of these ciphers belongs to TLSv1.2"),
    ],
)
def test_offer_when_nothing_can_be_meant_by_it_then_says_what_can(
    versions: list[str], ciphers: list[str], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        plan_offer(versions, ciphers)


def test_ciphers_when_offered_then_openssl_knows_each() -> None:
    for name in TlsOffer().ciphers:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(name)
        assert name in {each["name"] for each in context.get_ciphers()}


@pytest.mark.parametrize(
    ("seconds", "notice"),
    [
        (31 * DAY, None),
        (30 * DAY, None),
        (30 * DAY - 1, "expires in 29 days"),
        (1.0, "expires in 0 days"),
        (0.0, "has expired 0 days ago"),
        (-2.5 * DAY, "has expired 2 days ago"),
    ],
)
def test_certificate_when_its_end_is_near_or_past_then_days_are_told(seconds: float, notice: str | None) -> None:
    assert expiry_notice(seconds) == notice
