"""Where settings come from, and which source wins."""

from pathlib import Path

import click
import pytest

from interpulse.cli.settings import ConnectionSettings, read_client_conf

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
    with pytest.raises(
        click.UsageError, match=f"requestTimeoutSeconds must be a whole number above 0, not '{seconds}'"
    ):
        ConnectionSettings.resolve({}, {"requestTimeoutSeconds": seconds})


def test_file_when_missing_then_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="PULSAR_CLIENT_CONF=/nowhere cannot be read"):
        read_client_conf("/nowhere")


def test_settings_when_a_line_of_the_file_is_of_another_form_then_is_named(tmp_path: Path) -> None:
    file = tmp_path / "client.conf"
    file.write_text("# here\nwebServiceUrl http://file:8080\n")
    with pytest.raises(click.UsageError, match="line 2: expected key=value, found 'webServiceUrl http://file:8080'"):
        read_client_conf(str(file))
