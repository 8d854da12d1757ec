"""How reads and writes authenticate, without a JVM, against a broker that asks who they are."""

import json
from typing import Any

import pytest
from pyspark.sql.types import StringType

from interpulse.model.errors import AuthenticationError, PulsarError
from interpulse.testing import InProcessBroker
from tests.front_ends.access import token
from tests.support.identities import ADMIN_PASSWORD, settings_of_identities
from tests.support.issuer import AUDIENCE, Issuer
from tests.support.spark_source import columns_of, planned_reader, read_batch, write_batch

VALUE = columns_of(value=StringType())
JAVA_TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


JAVA_BASIC = "org.apache.pulsar.client.impl.auth.AuthenticationBasic"
JAVA_OAUTH2 = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"


@pytest.fixture(scope="module")
def issuer():
    with Issuer() as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, issuer):
    directory = tmp_path_factory.mktemp("guarded")
    with InProcessBroker(directory / "data", settings_of_identities(directory, issuer)) as broker:
        yield broker


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(token("admin"))
    return path


def by_plugin(plugin, params):
    return {"pulsar.client.authPluginClassName": plugin, "pulsar.client.authParams": params}


def by_issuer(issuer, key):
    params = {"issuerUrl": issuer.url, "privateKey": key.as_uri(), "audience": AUDIENCE}
    return by_plugin(JAVA_OAUTH2, json.dumps(params))


def ways(path, issuer):
    password = path.with_name("password")
    password.write_text(f"admin:{ADMIN_PASSWORD}\n")
    return {
        "file": {"authTokenFile": str(path)},
        "token": {"authToken": token("admin")},
        "url": {"authToken": path.as_uri()},
        "params": {"pulsar.client.authParams": f"token:{token('admin')}"},
        "plugin": by_plugin(JAVA_TOKEN, json.dumps({"token": token("admin")})),
        "password": by_plugin(JAVA_BASIC, json.dumps({"userId": "admin", "password": ADMIN_PASSWORD})),
        "password-file": by_plugin(JAVA_BASIC, password.as_uri()),
        "issuer": by_issuer(issuer, issuer.key_file(path.with_name("key.json"), "admin")),
    }


@pytest.mark.parametrize("way", ["file", "token", "url", "params", "plugin", "password", "password-file", "issuer"])
def test_rows_are_written_and_read_in_each_way_to_authenticate(guarded, token_file, issuer, way):
    topic = f"persistent://public/default/{way}"
    given = ways(token_file, issuer)[way]
    options = {"service.url": guarded.service_url, "topic": topic, **given}
    write_batch({**options, "admin.url": guarded.web_url, "createTopics": "0"}, VALUE, ("a",))
    assert [row["value"] for row in read_batch(options)] == [b"a"]


def test_token_of_an_issuer_is_renewed_as_long_as_a_process_works(guarded, issuer, tmp_path):
    key = issuer.key_file(tmp_path / "key.json", "admin")
    options = {"service.url": guarded.service_url, "topic": "persistent://public/default/long"}
    options |= by_issuer(issuer, key)
    before, issuer.lifetime_seconds = issuer.asked("/token"), 4
    written: list[Any] = []
    try:
        while issuer.asked("/token") < before + 2:
            written.append(str(len(written)))
            write_batch(options, VALUE, (written[-1],))
        assert [row["value"].decode() for row in read_batch(options)] == written
    finally:
        issuer.lifetime_seconds = 3600


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"authToken": "secret-nonsense"},
        by_plugin(JAVA_BASIC, '{"userId":"admin","password":"secret-nonsense"}'),
        by_plugin(JAVA_BASIC, "file:///secret/nowhere"),
    ],
)
def test_who_has_no_valid_credentials_is_refused_and_no_secret_is_told(guarded, given, caplog):
    options = {"service.url": guarded.service_url, "topic": "persistent://public/default/file", **given}
    with pytest.raises(PulsarError) as refused:
        read_batch(options)
    assert "secret-nonsense" not in f"{refused.value} {caplog.text}"


def test_who_is_unknown_to_the_issuer_is_told_so_and_no_secret(guarded, issuer, tmp_path, caplog):
    key = issuer.key_file(tmp_path / "key.json", "admin", secret="secret-nonsense")
    options = {"service.url": guarded.service_url, "topic": "persistent://public/default/file"}
    with pytest.raises(AuthenticationError, match="refuses a token for client admin") as refused:
        read_batch(options | by_issuer(issuer, key))
    assert "secret-nonsense" not in f"{refused.value} {caplog.text}"


def test_admin_api_is_asked_with_a_token_of_its_own(guarded, token_file):
    topic = "persistent://public/default/tables"
    options = {"service.url": guarded.service_url, "topic": topic, "authTokenFile": str(token_file)}
    write_batch({**options, "batchingMaxMessages": "1"}, VALUE, *[(str(value),) for value in range(40)])
    asked = {**options, "admin.url": guarded.web_url, "planner": "admin", "minPartitions": "4"}
    assert len(planned_reader(asked)[1]) == 4
    assert len(planned_reader({**asked, "pulsar.admin.authParams": f"token:{token('admin')}"})[1]) == 4
    with pytest.raises(PulsarError):
        planned_reader({**asked, "pulsar.admin.authParams": "token:none"})
