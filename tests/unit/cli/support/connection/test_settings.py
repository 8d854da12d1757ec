"""Where settings come from, and which source wins."""

import re
from pathlib import Path

import click
import pytest

from interpulse.cli.support.connection.settings import ConnectionSettings

CONF = """\
# a comment
! another
webServiceUrl = http://file:8080/
brokerServiceUrl=pulsar://file:6650
authPlugin=
authParams=
tlsAllowInsecureConnection=false
tlsEnableHostnameVerification=false
tlsTrustCertsFilePath=/certs.pem
tlsCertificateFilePath=/cert.pem
tlsKeyFilePath=/key.pem

"""


def conf_file(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "client.conf"
    file.write_text(CONF)
    return {"PULSAR_CLIENT_CONF": str(file)}


def test_settings_when_nothing_is_given_then_are_pulsars_defaults() -> None:
    settings = ConnectionSettings.resolve({}, {})
    assert (settings.admin_url, settings.service_url) == ("http://localhost:8080", "pulsar://localhost:6650")
    assert settings.request_timeout_ms == 300_000
    assert settings.credentials() is None
    assert settings.tls().hostname_verified
    assert not settings.tls().insecure_allowed


def test_settings_when_in_the_file_then_are_taken_from_it(tmp_path: Path) -> None:
    settings = ConnectionSettings.resolve({}, conf_file(tmp_path))
    assert (settings.admin_url, settings.service_url) == ("http://file:8080/", "pulsar://file:6650")
    assert settings.tls().trust_certs_path == "/certs.pem"
    assert (settings.tls().certificate_path, settings.tls().key_path) == ("/cert.pem", "/key.pem")
    assert not settings.tls().hostname_verified


def test_settings_when_given_twice_then_environment_wins_over_file_and_flag_over_both(tmp_path: Path) -> None:
    environment = conf_file(tmp_path) | {"webServiceUrl": "http://env", "brokerServiceUrl": "pulsar://env"}
    settings = ConnectionSettings.resolve({"webServiceUrl": "http://flag", "brokerServiceUrl": None}, environment)
    assert (settings.admin_url, settings.service_url) == ("http://flag", "pulsar://env")


def test_settings_when_token_is_configured_then_gives_credentials() -> None:
    flags = {"authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken", "authParams": "token:abc"}
    credentials = ConnectionSettings.resolve(flags, {}).credentials()
    assert credentials is not None
    assert credentials.http_header() == "Bearer abc"


def test_settings_when_plugin_is_unknown_then_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="not supported"):
        ConnectionSettings.resolve({"authPlugin": "x.Athenz"}, {}).credentials()


def test_settings_when_truth_value_is_none_then_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="tlsAllowInsecureConnection must be true or false, not 'perhaps'"):
        ConnectionSettings.resolve({}, {"tlsAllowInsecureConnection": "perhaps"})


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "1.5"])
def test_settings_when_timeout_is_no_number_of_seconds_then_is_wrong_usage(seconds: str) -> None:
    with pytest.raises(click.UsageError, match=f"requestTimeoutSeconds must be a positive integer, not '{seconds}'"):
        ConnectionSettings.resolve({}, {"requestTimeoutSeconds": seconds})


@pytest.mark.parametrize(
    ("conf", "asked", "words"),
    [
        (
            "brokerServiceUrl=pulsar://file:6650\n",
            "admin_url",
            "has no webServiceUrl: add it there, or give --admin-url",
        ),
        ("webServiceUrl=http://file:8080\n", "service_url", "has no brokerServiceUrl: add it there, or give --url"),
        ("webServiceUrl=\n", "admin_url", "has no webServiceUrl: add it there, or give --admin-url"),
    ],
)
def test_address_when_the_file_does_not_name_it_then_is_not_the_default(
    tmp_path: Path, conf: str, asked: str, words: str
) -> None:
    file = tmp_path / "client.conf"
    file.write_text(conf)
    settings = ConnectionSettings.resolve({}, {"PULSAR_CLIENT_CONF": str(file)})
    with pytest.raises(click.UsageError, match=re.escape(f"PULSAR_CLIENT_CONF={file} {words}")):
        getattr(settings, asked)


def test_address_when_only_the_environment_names_it_then_the_file_may_lack_it(tmp_path: Path) -> None:
    file = tmp_path / "client.conf"
    file.write_text("authPlugin=\n")
    settings = ConnectionSettings.resolve({}, {"PULSAR_CLIENT_CONF": str(file), "webServiceUrl": "http://env"})
    assert settings.admin_url == "http://env"
