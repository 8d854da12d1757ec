"""Secrets show up nowhere: not in what jobs and queries say and store, nor on Spark's pages and in its event log."""

import base64
import json
import re
import subprocess
import sys
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

import pytest

from interpulse.client.credentials import Credentials
from interpulse.model.names import TopicName
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.spark.replication_job import TOPIC, Job, configure, stored_entries, wait_until
from tests.support.identities import ADMIN_PASSWORD, settings_of_identities
from tests.support.issuer import AUDIENCE, SECRET_WORD, Issuer
from tests.support.standalone_process import free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ADMIN = {"credentials": Credentials.token(access.token("admin"))}
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false", "brokerDeduplicationEnabled": "true"}
ANSWERS = ("environment", "jobs", "stages", "allexecutors", "sql?details=true&planDescription=true&length=1000")
PAGES_MAX = 200


class Watched:
    """A Spark whose pages and events can be read."""

    def __init__(self, directory):
        self._url = f"http://127.0.0.1:{free_port()}"
        self._events = directory / "events"
        self._events.mkdir()
        self.conf = {
            "spark.ui.enabled": "true",
            "spark.ui.port": str(urlsplit(self._url).port),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self._events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.log.level": "INFO",
        }

    def shown(self):
        """Every page that is linked from the first one, and every answer of the monitoring API."""
        pages, waiting = dict[Any, Any](), [f"{self._url}/"]
        (app,) = json.loads(page(f"{self._url}/api/v1/applications"))
        waiting += [f"{self._url}/api/v1/applications/{app['id']}/{each}" for each in ANSWERS]
        while waiting and len(pages) < PAGES_MAX:
            url = waiting.pop()
            if url in pages:
                continue
            pages[url] = page(url)
            links = re.findall(r'href="([^"#]+)"', pages[url])
            found = [urljoin(url, link.replace("&amp;", "&")) for link in links]
            waiting += [
                link for link in found if link.startswith(self._url) and not re.search(r"/static/|/kill|dump", link)
            ]
        assert {"/environment/", "/SQL/", "/StreamingQuery/"} <= {urlsplit(url).path for url in pages}, sorted(pages)
        return pages


def page(url):
    try:
        with urlopen(url, timeout=60) as answer:
            return answer.read().decode(errors="replace")
    except HTTPError as error:
        return error.read().decode(errors="replace")


def showing(secrets, directory, pages):
    """Where one can be read; the signature of a token alone is enough to find it cut in two."""
    pieces = [piece for secret in secrets for piece in (secret, secret.rpartition(".")[2])]
    places = [
        path for path in directory.rglob("*") if path.is_file() and any(p.encode() in path.read_bytes() for p in pieces)
    ]
    return [str(place) for place in places] + [url for url, text in pages.items() if any(p in text for p in pieces)]


@pytest.fixture
def issuer():
    with Issuer() as running:
        yield running


@pytest.fixture
def guarded(tmp_path_factory, issuer):
    """Two clusters that ask who clients are, with messages in one of them."""
    directory = tmp_path_factory.mktemp("guarded")
    settings = settings_of_identities(directory, issuer) | KEPT
    with (
        InProcessBroker(directory / "east", {"clusterName": "east", **settings}) as east,
        InProcessBroker(directory / "west", {"clusterName": "west", **settings}) as west,
    ):
        east.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), 2))
        send(east, "there")
        send(east)
        yield east, west


def send(cluster, topic=TOPIC):
    with (
        Client(cluster.service_url, **ADMIN) as client,
        client.create_producer(topic) as producer,
    ):
        producer.send(b"a message")


def plugin_options(plugin, params):
    return {"pulsar.client.authPluginClassName": plugin, "pulsar.client.authParams": json.dumps(params)}


def by_plugin(plugin, params):
    return f"auth_plugin = \"{plugin}\"\nauth_params = '{json.dumps(params)}'"


def key_of(issuer, tmp_path_factory):
    return issuer.key_file(tmp_path_factory.mktemp("secret") / "key.json", "admin")


def test_secrets_of_a_job_are_in_no_line_page_event_or_file_and_are_renewed(
    tmp_path, tmp_path_factory, guarded, issuer
):
    east, west = guarded
    spark = Watched(tmp_path)
    issuer.lifetime_seconds = 12
    grant = {"issuerUrl": issuer.url, "privateKey": str(key_of(issuer, tmp_path_factory)), "audience": AUDIENCE}
    ways = (
        by_plugin("AuthenticationOAuth2", grant),
        by_plugin("AuthenticationBasic", {"userId": "admin", "password": ADMIN_PASSWORD}),
    )
    config = configure(tmp_path, ("east", east), ("west", west), conf=spark.conf, access=ways)
    job = Job(config).start()
    try:
        wait_until(lambda: job.lines("progress"))
        pages = spark.shown()
        given = len(issuer.issued)
        wait_until(lambda: len(issuer.issued) > given)
        send(east)
        wait_until(lambda: stored_entries(west, access=ADMIN) == 2)
        west.stop()  # what fails is told too
        wait_until(lambda: job.lines("error") or job.lines("disconnected"))
        pages |= spark.shown()
    finally:
        job.stop()
        west.restart()
    config.unlink()
    assert showing([SECRET_WORD, ADMIN_PASSWORD, *issuer.issued], tmp_path, pages) == []


def test_secrets_of_queries_are_in_no_plan_progress_error_page_event_or_file(
    tmp_path, tmp_path_factory, guarded, issuer
):
    token, (east, _) = access.token("admin"), guarded
    key = base64.b64encode(key_of(issuer, tmp_path_factory).read_bytes()).decode()
    grant = {"issuerUrl": issuer.url, "privateKey": f"data:application/json;base64,{key}", "audience": AUDIENCE}
    ways = [
        {"authToken": token, "pulsar.admin.authParams": f"token:{token}"},
        plugin_options("AuthenticationBasic", {"userId": "admin", "password": ADMIN_PASSWORD}),
        plugin_options("AuthenticationOAuth2", grant),
    ]
    spark = Watched(tmp_path)
    given = [str(tmp_path), spark.conf, [{"service.url": east.service_url, **way} for way in ways]]
    said = tmp_path / "said"
    command = [sys.executable, "-m", "tests.spark.queries_with_a_token"]
    with said.open("wb") as out, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
        try:
            wait_until(lambda: process.poll() is not None or said.read_text().endswith("done\n"))
            assert process.poll() is None, said.read_text()
            pages = spark.shown()
        finally:
            process.stdin.close()
    assert showing([token, ADMIN_PASSWORD, SECRET_WORD, key, *issuer.issued], tmp_path, pages) == []
