"""Settings of TLS that contradict themselves, and those that would do nothing, are refused by name."""

from __future__ import annotations

import pytest

from interpulse.broker.config.config_sources import load_config
from interpulse.rules.tls import TLS_VERSIONS, TlsOffer
from interpulse.serving.settings import ConfigError
from interpulse.serving.tls import ServerTls

FILES = ["tlsCertificateFilePath=/broker.pem", "tlsKeyFilePath=/broker.key"]
BOTH = ["brokerServicePortTls=6651", "webServicePortTls=8443", *FILES]
CIPHER = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("settings", "ports"),
    [
        ([], (6650, None, 8080, None)),
        (["brokerServicePort=1", "webServicePort=2"], (1, None, 2, None)),
        (BOTH, (6650, 6651, 8080, 8443)),
        ([*BOTH, "brokerServicePort=", "webServicePort="], (None, 6651, None, 8443)),
        (["brokerServicePortTls=0", *FILES, "brokerServicePort="], (None, 0, 8080, None)),
        (["brokerServicePort=", "brokerServicePort=1"], (1, None, 8080, None)),
    ],
)
def test_ports_when_left_empty_then_are_none(settings: list[str], ports: tuple[int | None, ...]) -> None:
    config = load_config(settings=settings).config
    found = (
        config.broker_service_port,
        config.broker_service_port_tls,
        config.web_service_port,
        config.web_service_port_tls,
    )
    assert found == ports
    assert load_config(settings=[f"{key}={value}" for key, value in config.as_text().items()]).config == config


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["brokerServicePort="], "brokerServicePort and brokerServicePortTls are both empty"),
        (["webServicePort="], "webServicePort and webServicePortTls are both empty"),
        (["brokerServicePortTls=0"], "need tlsCertificateFilePath and tlsKeyFilePath"),
        (["webServicePortTls=0", FILES[0]], "need tlsCertificateFilePath and tlsKeyFilePath"),
        (FILES, "tlsCertificateFilePath, tlsKeyFilePath: no port is inside TLS. Give brokerServicePortTls"),
        (["tlsTrustCertsFilePath=/ca.pem"], "tlsTrustCertsFilePath: no port is inside TLS"),
        (["tlsRequireTrustedClientCertOnConnect=true"], "tlsRequireTrustedClientCertOnConnect: no port is inside TLS"),
        ([f"tlsCiphers={CIPHER}"], "tlsCiphers: no port is inside TLS"),
        (["webServiceTlsProtocols=TLSv1.2"], "webServiceTlsProtocols: no port is inside TLS"),
        ([*BOTH, "tlsRequireTrustedClientCertOnConnect=true"], "needs tlsTrustCertsFilePath, a PEM file"),
        ([*BOTH, "tlsCiphers=RC4"], "tlsCiphers=RC4: RC4 is not offered"),
        ([*BOTH, "webServiceTlsCiphers=RC4"], "webServiceTlsCiphers=RC4: RC4 is not offered"),
        ([*BOTH, "tlsProtocols=TLSv1.1"], "tlsProtocols=TLSv1.1: must be some of TLSv1.3, TLSv1.2"),
        ([*BOTH, "tlsProtocols=SSLv3,TLSv1.2"], "must be some of TLSv1.3, TLSv1.2"),
        ([*BOTH, "tlsProtocols=TLSv1.3", f"tlsCiphers={CIPHER}"], "none of these ciphers belongs to TLSv1.3"),
        (["brokerServicePortTls=0", *FILES, "webServiceTlsProtocols=TLSv1.2"], "they are for webServicePortTls"),
        (
            ["webServicePortTls=0", *FILES, f"tlsCiphers={CIPHER}", f"webServiceTlsCiphers={CIPHER}"],
            "tlsCiphers has no effect: it is for brokerServicePortTls",
        ),
        (
            ["brokerClientTlsEnabled=true"],
            "brokerClientTlsEnabled=true needs brokerServicePortTls and webServicePortTls",
        ),
        ([*BOTH, "brokerClientTrustCertsFilePath=/ca.pem"], "have no effect without brokerClientTlsEnabled=true"),
        (
            [*BOTH, "brokerClientTlsEnabled=true", "brokerClientKeyFilePath=/k"],
            "brokerClientCertificateFilePath and brokerClientKeyFilePath belong together",
        ),
    ],
)
def test_settings_when_they_contradict_themselves_then_the_key_and_the_remedy_are_named(
    settings: list[str], problem: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(settings=settings)
    (told,) = refusal.value.problems
    assert problem in told


def test_problems_when_there_are_several_then_all_are_told_together() -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(settings=["brokerServicePort=", "webServicePort=", "tlsKeyFilePath=/k"])
    assert len(refusal.value.problems) == 3


def test_web_when_it_has_no_versions_and_ciphers_of_its_own_then_has_those_of_the_binary_port() -> None:
    config = load_config(settings=[*BOTH, "tlsProtocols=TLSv1.2", "tlsTrustCertsFilePath=/ca.pem"]).config
    expected = ServerTls("/broker.pem", "/broker.key", "/ca.pem", False, TlsOffer(("TLSv1.2",)))
    assert config.binary_tls == config.web_tls == expected
    own = load_config(settings=[*BOTH, f"webServiceTlsCiphers={CIPHER}"]).config
    assert own.binary_tls.offer == TlsOffer(TLS_VERSIONS)
    assert own.web_tls.offer == TlsOffer(("TLSv1.2",), ("ECDHE-RSA-AES256-GCM-SHA384",))
