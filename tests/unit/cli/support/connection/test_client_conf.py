"""What a ``client.conf`` may say, and what becomes of it."""

from pathlib import Path

import click
import pytest

from interpulse.cli.support.connection.client_conf import OBEYED, read_client_conf
from tests.unit.cli.conftest import RunAdmin

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


def conf_file(tmp_path: Path, text: str) -> str:
    file = tmp_path / "client.conf"
    file.write_text(text)
    return str(file)


def test_file_when_it_is_the_one_pulsar_ships_then_is_taken_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = read_client_conf(conf_file(tmp_path, SHIPPED))
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
        read_client_conf(conf_file(tmp_path, f"# here\n{line}\n"))


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
    path = conf_file(tmp_path, f"authPlugin=\n{key}=x\n")
    with pytest.raises(click.UsageError) as refused:
        read_client_conf(path)
    assert str(refused.value) == f"PULSAR_CLIENT_CONF={path}, line 2: unknown key '{key}'; {advice}"


def test_keys_when_only_java_can_obey_them_then_one_warning_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = conf_file(tmp_path, "useKeyStoreTls=true\ntlsKeyStorePath=/a.jks\nwebserviceTlsProvider=Conscrypt\n")
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
    monkeypatch.setenv("PULSAR_CLIENT_CONF", conf_file(tmp_path, "webServiceURL=http://127.0.0.1:1\n"))
    result = run_admin("tenants", "list")
    assert result.exit_code == 2
    assert "unknown key 'webServiceURL'; did you mean 'webServiceUrl'?" in result.stderr
