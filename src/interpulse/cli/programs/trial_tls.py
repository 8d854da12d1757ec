"""Additions of ``interpulse standalone --tls``: TLS ports with certificates of an authority of its own."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interpulse.cli.programs.serving import CannotStart

if TYPE_CHECKING:
    from interpulse.broker.config.broker_config import BrokerConfig
    from interpulse.serving.settings import LoadedConfig

_MADE: Final = "made for the trial"
_SETTINGS: Final = (
    "brokerServicePortTls=6651",
    "webServicePortTls=8443",
    f"tlsCertificateFilePath={_MADE}",
    f"tlsKeyFilePath={_MADE}",
    "brokerClientTlsEnabled=true",
    f"brokerClientTrustCertsFilePath={_MADE}",
)


def with_trial_certificates(
    load: Callable[[tuple[str, ...]], LoadedConfig[BrokerConfig]], settings: tuple[str, ...]
) -> tuple[LoadedConfig[BrokerConfig], str]:
    """Return settings with trial certificates and a note for users; ``settings`` win. Raise CannotStart."""
    from interpulse.broker.access.trial_authority import TrialAuthority

    loaded = load((*_SETTINGS, *settings))
    config = loaded.config
    if config.tls_certificate_file_path != _MADE or config.tls_key_file_path != _MADE:
        raise CannotStart("--tls makes the certificates: take tlsCertificateFilePath and tlsKeyFilePath out of --set")
    trial = TrialAuthority(Path(config.data_dir).resolve() / "tls")
    try:
        trial.prepare(_hosts(config), datetime.datetime.now(datetime.UTC))
    except (OSError, ValueError) as error:
        raise CannotStart(f"--tls cannot make certificates in {trial.directory}: {error}") from error
    config = replace(
        config,
        tls_certificate_file_path=str(trial.certificate),
        tls_key_file_path=str(trial.key),
        broker_client_trust_certs_file_path=str(trial.authority),
    )
    return replace(loaded, config=config), f"clients trust it with: tlsTrustCertsFilePath={trial.authority}"


def _hosts(config: BrokerConfig) -> list[str]:
    """Return the host names by which clients may connect to the broker."""
    hosts = (config.bind_address, config.advertised_address, socket.gethostname())
    return ["localhost", "127.0.0.1", "::1", *(host for host in hosts if host and host not in ("0.0.0.0", "::"))]
