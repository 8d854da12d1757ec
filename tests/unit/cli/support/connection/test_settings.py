"""Settings of a connection by their sources, and the file client.conf."""

import re
from pathlib import Path

import click
import pytest

from interpulse.cli.support.connection.settings import OBEYED, ConnectionSettings, read_client_conf
from tests.unit.cli.conftest import RunAdmin

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


def test_environment_wins_over_file_and_flag_over_both(tmp_path: Path) -> None:
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


SHIPPED = """\
# a comment
! another
webServiceUrl=http://localhost:8080/
brokerServiceUrl=pulsar://localhost:6650/
authPlugin=
authParams=
tlsAllowInsecureConnection=false
tlsEnableHostnameVerification=false
tlsTrustCertsFilePath=
tlsCertificateFilePath=
tlsKeyFilePath=
useKeyStoreTls=false
tlsTrustStoreType=JKS
tlsTrustStorePath=
tlsTrustStorePassword=
tlsKeyStoreType=JKS
tlsKeyStorePath=
tlsKeyStorePassword=
webserviceTlsProvider=
"""
"""The settings of the file that Apache Pulsar ships."""


def written_conf(tmp_path: Path, text: str) -> str:
    file = tmp_path / "client.conf"
    file.write_text(text)
    return str(file)


def test_file_when_it_is_the_one_pulsar_ships_then_is_taken_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = read_client_conf(written_conf(tmp_path, SHIPPED))
    assert settings["webServiceUrl"] == "http://localhost:8080/"
    assert set(settings) <= set(OBEYED)
    assert capsys.readouterr().err == ""


def test_file_when_no_variable_names_one_then_nothing_is_set() -> None:
    assert read_client_conf(None) == {}


@pytest.mark.parametrize("path", ["", " "])
def test_file_when_the_variable_is_empty_then_is_wrong_usage(path: str) -> None:
    with pytest.raises(click.UsageError, match="PULSAR_CLIENT_CONF is set but empty: name a file"):
        read_client_conf(path)


def test_file_when_missing_then_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="PULSAR_CLIENT_CONF=/nowhere cannot be read: No such file"):
        read_client_conf("/nowhere")


def test_file_when_it_is_no_text_then_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "client.conf"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(click.UsageError, match="is not UTF-8 text"):
        read_client_conf(str(file))


@pytest.mark.parametrize("line", ["webServiceUrl http://file:8080", "=http://file:8080"])
def test_file_when_a_line_is_of_another_form_then_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(click.UsageError, match=f"line 2: expected key=value, found '{line}'"):
        read_client_conf(written_conf(tmp_path, f"# here\n{line}\n"))


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("webServiceURL", "did you mean 'webServiceUrl'?"),
        ("webserviceurl", "did you mean 'webServiceUrl'?"),
        ("adminServiceUrl", "did you mean 'serviceUrl'?"),
        ("tlsTrustCertFilePath", "did you mean 'tlsTrustCertsFilePath'?"),
        ("useKeystoreTls", "did you mean 'useKeyStoreTls'?"),
        ("zookeeper", f"known keys: {', '.join(OBEYED)}"),
    ],
)
def test_key_when_pulsar_does_not_know_it_then_is_refused_with_the_nearest(
    tmp_path: Path, key: str, advice: str
) -> None:
    path = written_conf(tmp_path, f"authPlugin=\n{key}=x\n")
    with pytest.raises(click.UsageError) as refused:
        read_client_conf(path)
    assert str(refused.value) == f"PULSAR_CLIENT_CONF={path}, line 2: unknown key '{key}'; {advice}"


def test_keys_when_only_java_can_obey_them_then_one_warning_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written_conf(tmp_path, "useKeyStoreTls=true\ntlsKeyStorePath=/a.jks\nwebserviceTlsProvider=Conscrypt\n")
    assert read_client_conf(path) == {}
    assert capsys.readouterr().err == (
        f"Warning: PULSAR_CLIENT_CONF={path}: no effect here: useKeyStoreTls, tlsKeyStorePath (certificates are read "
        "from PEM files: tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath); webserviceTlsProvider (TLS is "
        "Python's own)\n"
    )


def test_command_when_a_key_is_misspelt_then_nothing_is_asked(
    tmp_path: Path, run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("webServiceUrl")
    monkeypatch.setenv("PULSAR_CLIENT_CONF", written_conf(tmp_path, "webServiceURL=http://127.0.0.1:1\n"))
    result = run_admin("tenants", "list")
    assert result.exit_code == 2
    assert "unknown key 'webServiceURL'; did you mean 'webServiceUrl'?" in result.stderr
