"""A real Pulsar that asks for tokens, and serves its two front ends over TLS as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.front_ends import access
from tests.interop.real_pulsar import RealPulsar
from tests.interop.replicated_pairs import Cluster, until
from tests.support.certificates import Authority
from tools.engines.server import free_port

TOKEN_PLUGIN: Final = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@dataclass(frozen=True)
class PulsarWithTokens(Cluster):
    """Its operators show a token themselves. ``authority`` is the certificate to be trusted."""

    token: str = ""
    web_url_tls: str = ""
    service_url_tls: str = ""
    authority: Path = Path()

    def attempt(self, line: str) -> tuple[int, str, str]:
        """See `CliCluster`."""
        return super().attempt(f"--auth-plugin {TOKEN_PLUGIN} --auth-params token:{self.token} {line}")

    @property
    def record_over_tls(self) -> str:
        """Its addresses, as options of ``clusters update``."""
        return (
            f"--url-secure {self.web_url_tls} --broker-url-secure {self.service_url_tls} "
            f"--tls-enable --tls-trust-certs-filepath {self.authority}"
        )


@contextmanager
def start_pulsar_with_tokens(directory: Path) -> Iterator[PulsarWithTokens]:
    """Started for the super user and the roles of `tests.front_ends.access`."""
    ports = free_port(), free_port()
    authority = Authority(directory / "certificates")
    certificate, key = authority.issue("127.0.0.1")
    tls = {
        "brokerServicePortTls": str(ports[0]),
        "webServicePortTls": str(ports[1]),
        "tlsCertificateFilePath": str(certificate),
        "tlsKeyFilePath": str(key),
    }
    with RealPulsar(directory / "pulsar", settings=access.settings(directory) | tls) as pulsar:
        cluster = PulsarWithTokens(
            pulsar.web_url,
            pulsar.service_url,
            "standalone",
            is_ours=False,
            token=access.token("admin"),
            web_url_tls=f"https://127.0.0.1:{ports[1]}",
            service_url_tls=f"pulsar+ssl://127.0.0.1:{ports[0]}",
            authority=authority.file,
        )
        # It says 401 before it has made what it needs itself.
        until(lambda: cluster.attempt("namespaces policies public/default")[0], 0)
        yield cluster
