"""Official clients inside TLS, with and without certificates of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from interpulse.testing.broker import Setting
from tests.front_ends.brokers import NO_JOB
from tests.interop.test_remote_credentials import QUIET
from tests.support.certificates import Authority, Certificate

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BY_CERTIFICATE: dict[str, Setting] = {
    "authenticationEnabled": True,
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
    "authorizationEnabled": True,
    "superUserRoles": "admin",
}


@dataclass(frozen=True)
class Sealed:
    broker: InProcessBroker
    authority: Authority
    admin: Certificate


def sealed(directory: Path, **others: Setting) -> Iterator[Sealed]:
    authority = Authority(directory / "authority")
    own = authority.issue("broker", names=["localhost"])
    settings: dict[str, Setting] = {
        "brokerServicePort": "",
        "webServicePort": "",
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": str(own.certificate),
        "tlsKeyFilePath": str(own.key),
        "tlsTrustCertsFilePath": str(authority.file),
    }
    with InProcessBroker(directory / "data", settings | others | NO_JOB) as broker:
        yield Sealed(broker, authority, authority.issue("admin"))


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    """Everyone may come in."""
    yield from sealed(tmp_path_factory.mktemp("inside"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    """Only who shows a certificate may come in."""
    required: dict[str, Setting] = {"tlsRequireTrustedClientCertOnConnect": True}
    yield from sealed(tmp_path_factory.mktemp("guarded"), **(BY_CERTIFICATE | required))


def python_round_trip(cluster: Sealed, shown: Certificate | None, service_url: str) -> bytes:
    client = pulsar.Client(
        service_url,
        authentication=None if shown is None else pulsar.AuthenticationTLS(*map(str, shown)),
        tls_trust_certs_file_path=str(cluster.authority.file),
        tls_validate_hostname=True,
        operation_timeout_seconds=60,
        logger=QUIET,
    )
    try:
        consumer = client.subscribe("sealed-python", "all")
        client.create_producer("sealed-python").send(b"inside" * 100_000)
        return bytes(consumer.receive(60_000).data())
    finally:
        client.close()


@pytest.mark.parametrize("kind", ["inside", "guarded"])
@pytest.mark.parametrize("lookup", ["service_url_tls", "web_url_tls"])
def test_python_client_when_inside_tls_then_publishes_and_reads(
    kind: str, lookup: str, request: pytest.FixtureRequest
) -> None:
    cluster: Sealed = request.getfixturevalue(kind)
    shown = cluster.admin if kind == "guarded" else None
    assert python_round_trip(cluster, shown, getattr(cluster.broker, lookup)) == b"inside" * 100_000


def test_java_client_when_it_shows_its_certificate_then_publishes_reads_and_administers(
    guarded: Sealed, java_check: Callable[..., str]
) -> None:
    urls = guarded.broker.service_url_tls, guarded.broker.web_url_tls
    lines = java_check("Sealed.java", *urls, str(guarded.authority.file), *map(str, guarded.admin)).splitlines()
    said = dict(line.split(": ", 1) for line in lines if line.startswith(("message: ", "admin: ")))
    assert said == {"message": "inside", "admin": "[java]"}
