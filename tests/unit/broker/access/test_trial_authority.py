"""Certificates for a trial: made once, kept to oneself, and made anew when they do not suffice."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from interpulse.broker.access.trial_authority import TrialAuthority
from interpulse.serving.tls import ServerTls

NOW = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


def contents(trial: TrialAuthority) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in trial.directory.iterdir()}


def test_certificates_when_made_then_can_be_used_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    trial = TrialAuthority(tmp_path / "data" / "tls")
    trial.prepare(["localhost", "127.0.0.1", "::1", "broker.example.com"], NOW)
    assert {path.name for path in trial.directory.iterdir()} == {
        "authority.key",
        "authority.pem",
        "broker.key",
        "broker.pem",
    }
    assert trial.directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in trial.directory.iterdir()} == {0o600}
    ServerTls(str(trial.certificate), str(trial.key), str(trial.authority)).context()
    found = x509.load_pem_x509_certificate(trial.certificate.read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker.example.com", "localhost"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_certificates_when_they_suffice_then_stay(tmp_path: Path) -> None:
    trial = TrialAuthority(tmp_path)
    trial.prepare(["localhost", "127.0.0.1"], NOW)
    before = contents(trial)
    trial.prepare(["127.0.0.1"], NOW + 300 * DAY)
    assert contents(trial) == before


@pytest.mark.parametrize(("hosts", "days"), [(["localhost", "other"], 0), (["localhost"], 380)])
def test_certificate_when_it_lacks_a_name_or_ends_soon_then_is_made_anew_by_the_same_authority(
    tmp_path: Path, hosts: list[str], days: int
) -> None:
    trial = TrialAuthority(tmp_path)
    trial.prepare(["localhost"], NOW)
    before = contents(trial)
    trial.prepare(hosts, NOW + days * DAY)
    after = contents(trial)
    assert {name for name in after if after[name] != before[name]} == {"broker.pem", "broker.key"}
    ServerTls(str(trial.certificate), str(trial.key)).context()
    ssl.create_default_context(cafile=str(trial.authority))


def test_files_when_they_are_not_of_ours_then_are_refused(tmp_path: Path) -> None:
    trial = TrialAuthority(tmp_path)
    trial.prepare(["localhost"], NOW)
    (tmp_path / "authority.key").write_text("nothing")
    (tmp_path / "broker.pem").unlink()
    with pytest.raises(ValueError, match="PEM"):
        trial.prepare(["localhost"], NOW)
