"""Documents of Java's ControlledClusterFailover."""

from __future__ import annotations

import pytest

from interpulse.client.credentials import Credentials
from interpulse.client.failover.controlled import ControlledFailover, site_from_document
from interpulse.client.failover.sites import Site
from interpulse.client.tls import TlsOptions

EAST = Site("pulsar+ssl://east:6651", "https://east:8443", Credentials.token("token:e"), TlsOptions("/east.pem"))
TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param({}, EAST, id="empty"),
        pytest.param(
            {"serviceUrl": "", "tlsTrustCertsFilePath": None, "authParamsString": ""}, EAST, id="empty fields"
        ),
        pytest.param(
            {"serviceUrl": "pulsar+ssl://west:6651"},
            Site("pulsar+ssl://west:6651", None, EAST.credentials, EAST.tls),
            id="address only",
        ),
        pytest.param(
            {
                "serviceUrl": "pulsar+ssl://west:6651",
                "tlsTrustCertsFilePath": "/west.pem",
                "authPluginClassName": TOKEN,
                "authParamsString": "token:w",
            },
            Site("pulsar+ssl://west:6651", None, Credentials.token("token:w"), TlsOptions("/west.pem")),
            id="all",
        ),
        pytest.param(
            {"authPluginClassName": TOKEN, "authParamsString": "token:new"},
            Site(EAST.service_url, EAST.admin_url, Credentials.token("token:new"), EAST.tls),
            id="credentials only",
        ),
    ],
)
def test_site_when_a_document_names_it(document: dict[str, object], expected: Site) -> None:
    assert site_from_document(document, EAST) == expected


@pytest.mark.parametrize(
    "document",
    [{"serviceUrl": 7}, {"serviceUrl": "west"}, {"authPluginClassName": "Kerberos"}, {"authPluginClassName": TOKEN}],
)
def test_document_when_it_names_no_usable_site_then_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        site_from_document(document, EAST)


def test_trusted_certificates_when_there_were_no_options_then_the_others_are_defaults() -> None:
    site = site_from_document({"tlsTrustCertsFilePath": "/w.pem"}, Site("pulsar+ssl://east:6651"))
    assert site.tls == TlsOptions("/w.pem")


@pytest.mark.parametrize("options", [{"source": ""}, {"interval_s": 0}, {"timeout_s": 0}])
def test_settings_when_they_make_no_sense_then_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ControlledFailover(**{"source": "/sites.json", **options})  # type: ignore[arg-type]


def test_source_when_it_is_a_file_then_has_a_path() -> None:
    assert ControlledFailover("file:///sites.json").path == ControlledFailover("/sites.json").path == "/sites.json"
    assert [ControlledFailover(source).is_address for source in ("/s", "http://s", "https://s")] == [False, True, True]
