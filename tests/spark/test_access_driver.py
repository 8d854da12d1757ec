"""How reads and writes authenticate, without a JVM, against a broker that asks for tokens."""

import json

import pytest
from pyspark.sql.types import StringType

from interpulse.model.errors import PulsarError
from interpulse.testing import InProcessBroker
from tests.front_ends.access import settings, token
from tests.support.spark_source import columns_of, planned_reader, read_batch, write_batch

VALUE = columns_of(value=StringType())
JAVA_TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("guarded")
    with InProcessBroker(directory / "data", settings(directory)) as broker:
        yield broker


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(token("admin"))
    return path


def ways(path):
    return {
        "file": {"authTokenFile": str(path)},
        "token": {"authToken": token("admin")},
        "url": {"authToken": path.as_uri()},
        "params": {"pulsar.client.authParams": f"token:{token('admin')}"},
        "plugin": {
            "pulsar.client.authPluginClassName": JAVA_TOKEN,
            "pulsar.client.authParams": json.dumps({"token": token("admin")}),
        },
    }


@pytest.mark.parametrize("way", ["file", "token", "url", "params", "plugin"])
def test_rows_are_written_and_read_with_a_token(guarded, token_file, way):
    topic = f"persistent://public/default/{way}"
    options = {"service.url": guarded.service_url, "topic": topic, **ways(token_file)[way]}
    write_batch(options, VALUE, ("a",))
    assert [row["value"] for row in read_batch(options)] == [b"a"]


@pytest.mark.parametrize("given", [{}, {"authToken": "secret-nonsense"}])
def test_who_has_no_valid_token_is_refused_and_no_token_is_told(guarded, given, caplog):
    options = {"service.url": guarded.service_url, "topic": "persistent://public/default/file", **given}
    with pytest.raises(PulsarError) as refused:
        read_batch(options)
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
