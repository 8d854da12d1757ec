"""A token shows up nowhere: not in what jobs and queries say and store, nor on Spark's pages and in its event log."""

import json
import re
import subprocess
import sys
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

import pytest

from interpulse.client.credentials import Credentials
from interpulse.model.names import TopicName
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.spark.replication_job import TOPIC, Job, configure, wait_until
from tests.support.standalone_process import free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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
        pages, waiting = {}, [f"{self._url}/"]
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


def showing(token, directory, pages):
    """Where it can be read; its signature alone is enough to find it cut in two."""
    pieces = [token, token.rpartition(".")[2]]
    places = [
        path for path in directory.rglob("*") if path.is_file() and any(p.encode() in path.read_bytes() for p in pieces)
    ]
    return [str(place) for place in places] + [url for url, text in pages.items() if any(p in text for p in pieces)]


@pytest.fixture
def guarded(tmp_path_factory):
    """Two clusters that ask for tokens, with messages in one of them."""
    directory = tmp_path_factory.mktemp("guarded")
    settings = access.settings(directory) | KEPT
    with (
        InProcessBroker(directory / "east", {"clusterName": "east", **settings}) as east,
        InProcessBroker(directory / "west", {"clusterName": "west", **settings}) as west,
    ):
        east.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), 2))
        with Client(east.service_url, credentials=Credentials.token(access.token("admin"))) as client:
            for topic in (TOPIC, "there"):
                with client.create_producer(topic) as producer:
                    producer.send(b"a message")
        yield east, west


@pytest.fixture
def token_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret") / "token"
    path.write_text(access.token("admin"))
    return path


def test_token_of_a_job_is_in_no_line_page_event_or_file(tmp_path, guarded, token_file):
    east, west = guarded
    spark = Watched(tmp_path)
    tokens = f'token = "{access.token("admin")}"', f'token = "{token_file.as_uri()}"'
    config = configure(tmp_path, ("east", east), ("west", west), conf=spark.conf, access=tokens)
    job = Job(config).start()
    try:
        wait_until(lambda: job.lines("progress"))
        pages = spark.shown()
        west.stop()  # what fails is told too
        wait_until(lambda: job.lines("error") or job.lines("disconnected"))
        pages |= spark.shown()
    finally:
        job.stop()
        west.restart()
    config.unlink()
    assert showing(access.token("admin"), tmp_path, pages) == []


def test_token_of_queries_is_in_no_plan_progress_error_page_event_or_file(tmp_path, guarded, token_file):
    token, (east, _) = access.token("admin"), guarded
    ways = {"authToken": token, "authTokenFile": str(token_file), "pulsar.client.authParams": f"token:{token}"}
    spark = Watched(tmp_path)
    given = [str(tmp_path), spark.conf, [{"service.url": east.service_url, key: way} for key, way in ways.items()]]
    said = tmp_path / "said"
    command = [sys.executable, "-m", "tests.spark.queries_with_a_token"]
    with said.open("wb") as out, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out) as process:
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
        try:
            wait_until(lambda: process.poll() is not None or said.read_text().endswith("done\n"))
            assert process.poll() is None, said.read_text()
            pages = spark.shown()
        finally:
            process.stdin.close()
    assert showing(token, tmp_path, pages) == []
