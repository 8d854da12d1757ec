"""The players that ask each front end of any broker: every one gives its answers in the words of `rows`."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import pulsar
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.client import Client
from interpulse.model.errors import Conflict, NotAllowed, NotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.front_ends.rows import NOT_FOUND, OK, REFUSED, Case, kind_of, refused
from tests.support import commands
from tests.support.official_client import connected
from tests.support.raw_client import RawClient

SUBSCRIPTION: Final = "s"
TIMEOUT_MS: Final = 60_000
ANSWERS_IN_WORDS: Final = frozenset({"partitions", "partitions create", "http lookup", "stats"})
"""Questions whose refusals have a word; those of operations are a status."""


def word_for_status(question: str, status: int, reason: str) -> str:
    """What an answer over HTTP of 300 and above is called."""
    if kind_of(question) in ANSWERS_IN_WORDS:
        if status == 404:
            return NOT_FOUND
        if status == 409:
            return refused(reason)
    return str(status)


class Players:
    """All players in front of one broker. Use it as a context manager, in code that is not asynchronous."""

    def __init__(self, service_url: str, web_url: str) -> None:
        self._service_url = service_url
        self._web_url = web_url
        self._runner = asyncio.Runner()
        self._front_ends: Mapping[str, Callable[[Case], str]] = {
            "binary": self._binary,
            "rest": self._rest,
            "client": lambda case: self._client(service_url, case),
            "client-http": lambda case: self._client(web_url, case),
            "official": lambda case: self._official(service_url, case),
            "official-http": lambda case: self._official(web_url, case),
            "cli": self._cli,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def ask(self, case: Case) -> str:
        """The answer of this broker."""
        if case.question.endswith(" again"):
            self._front_ends[case.front_end](case)
        return self._front_ends[case.front_end](case)

    # --- the binary protocol

    def _binary(self, case: Case) -> str:
        with RawClient(self._service_url) as client:
            answer = client.ask(_FRAMES[case.question](str(case.topic)))
        return word_for_frame(answer)

    # --- REST

    def _rest(self, case: Case) -> str:
        method, path, body = _CALLS[kind_of(case.question)]
        words = case.question.split()
        path = path.format(topic=case.topic.rest_path, place=_place(case), force=str("force" in words).lower())
        if "local" in words:
            path += "?createLocalTopicOnly=true"
        sent = _count(case) if body == "count" else body
        status, text = self._call(method, path, sent)
        if status >= 300:
            reason = json.loads(text)["reason"]
            return word_for_status(case.question, status, reason)
        if kind_of(case.question) in ("partitions", "partitions create"):
            return str(json.loads(text)["partitions"])
        if words[0] == "list":
            return case.short(json.loads(text))
        if "body" in words:
            return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        return OK if kind_of(case.question) in ANSWERS_IN_WORDS else str(status)

    def _call(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        content = None if body is None else body.encode()
        request = urllib.request.Request(f"{self._web_url}{path}", content, method=method)
        if content is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_MS / 1000) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    # --- our client

    def _client(self, url: str, case: Case) -> str:
        return self._runner.run(_ask_with_our_client(url, case))

    # --- the official client

    def _official(self, url: str, case: Case) -> str:
        topic = str(case.topic)
        with connected(url) as client:
            try:
                if case.question == "partitions create":
                    return _partitions(case.topic, client.get_topic_partitions(topic))
                if case.question == "open producer":
                    client.create_producer(topic)
                else:
                    client.subscribe(topic, SUBSCRIPTION)
            except pulsar.TopicNotFound:
                return NOT_FOUND
            except pulsar.NotAllowedError:
                return REFUSED
            except pulsar.PulsarException as error:
                return type(error).__name__
        return OK

    # --- the command line

    def _cli(self, case: Case) -> str:
        topic, words = str(case.topic), case.question.split()
        if case.question == "open producer":
            arguments = ["produce", "--url", self._service_url, topic, "-m", "x"]
        else:
            line = _LINES[kind_of(case.question)].format(
                topic=topic, namespace=case.topic.namespace_name, count=_count(case)
            )
            arguments = ["admin", "--admin-url", self._web_url, *line.split(), *(["-f"] if "force" in words else [])]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        if result.exit_code:
            return _word_for_command(case.question, result.stderr)
        if case.question == "partitions":
            return str(json.loads(result.stdout)["partitions"])
        if words[0] == "list":
            return case.short(result.stdout.splitlines())
        return OK if case.question in (*ANSWERS_IN_WORDS, "open producer") else "204"


async def _ask_with_our_client(url: str, case: Case) -> str:
    topic = str(case.topic)
    try:
        async with Client(url, operation_timeout_ms=TIMEOUT_MS, lookup_timeout_ms=TIMEOUT_MS) as client:
            match case.question:
                case "partitions create":
                    return _partitions(case.topic, await client.get_partitions_for_topic(topic, create=True))
                case "partitions":
                    return _partitions(case.topic, await client.get_partitions_for_topic(topic, create=False))
                case "lookup" | "http lookup":
                    await client.session.lookup.broker(case.topic)
                case "open producer":
                    await client.create_producer(topic)
                case "open consumer":
                    await client.subscribe(topic, SUBSCRIPTION)
    except NotFound:
        return NOT_FOUND
    except (NotAllowed, Conflict) as error:
        return refused(str(error))
    except PulsarError as error:
        return type(error).__name__
    return OK


def _partitions(topic: TopicName, names: list[str]) -> str:
    """How many partitions the names are; the topic itself stands for none."""
    if names == [str(topic)]:
        return "0"
    assert names == [str(topic.partition(index)) for index in range(len(names))], names
    return str(len(names))


def _place(case: Case) -> str:
    return f"{case.topic.domain}/{case.topic.namespace_name}"


def _count(case: Case) -> str:
    return next((word for word in case.question.split() if word.lstrip("-").isdigit()), "")


def word_for_frame(answer: Any) -> str:
    """What an answer of the binary protocol is called. Of absent topics only a missing namespace is told in words."""
    if getattr(answer, "response", 0) == _FAILED.get(type(answer)) or isinstance(answer, pb.CommandError):
        if isinstance(answer, pb.CommandPartitionedTopicMetadataResponse) and answer.error == pb.TopicNotFound:
            assert not answer.message or answer.message.startswith("Namespace not found"), answer.message
        return _word_for_code(answer.error, answer.message)
    if isinstance(answer, pb.CommandPartitionedTopicMetadataResponse):
        assert answer.HasField("partitions")
        return str(answer.partitions)
    return OK


def _word_for_code(code: int, message: str) -> str:
    match code:
        case pb.TopicNotFound:
            return NOT_FOUND
        case pb.NotAllowedError:
            return refused(message)
    return f"error {code}"


def _word_for_command(question: str, printed: str) -> str:
    status = re.search(r"\(HTTP (\d+)", printed)
    if status:
        return word_for_status(question, int(status.group(1)), printed)
    word = refused(printed)
    return NOT_FOUND if word == REFUSED and re.search("does not exist|not found", printed) else word


_FAILED: Final[Mapping[type, int]] = {
    pb.CommandPartitionedTopicMetadataResponse: pb.CommandPartitionedTopicMetadataResponse.Failed,
    pb.CommandLookupTopicResponse: pb.CommandLookupTopicResponse.Failed,
}

_FRAMES: Final[Mapping[str, Callable[[str], bytes]]] = {
    "partitions create": lambda topic: commands.partitioned_metadata(1, topic),
    "partitions": lambda topic: commands.partitioned_metadata(1, topic, create=False),
    "lookup": lambda topic: commands.lookup(1, topic),
    "producer": lambda topic: commands.producer(1, 1, topic),
    "subscribe": lambda topic: commands.subscribe(1, 1, topic, SUBSCRIPTION),
    "subscribe only": lambda topic: commands.subscribe(1, 1, topic, SUBSCRIPTION, force_topic_creation=False),
}

_CALLS: Final[Mapping[str, tuple[str, str, str | None]]] = {
    "partitions": ("GET", "/admin/v2/{topic}/partitions", None),
    "partitions create": ("GET", "/admin/v2/{topic}/partitions?checkAllowAutoCreation=true", None),
    "partitions body": ("GET", "/admin/v2/{topic}/partitions", None),
    "partitions create body": ("GET", "/admin/v2/{topic}/partitions?checkAllowAutoCreation=true", None),
    "http lookup": ("GET", "/lookup/v2/topic/{topic}", None),
    "stats": ("GET", "/admin/v2/{topic}/stats", None),
    "list": ("GET", "/admin/v2/{place}", None),
    "list partitioned": ("GET", "/admin/v2/{place}/partitioned", None),
    "create": ("PUT", "/admin/v2/{topic}", None),
    "create partitioned": ("PUT", "/admin/v2/{topic}/partitions", "count"),
    "expand": ("POST", "/admin/v2/{topic}/partitions?force={force}", "count"),
    "create missed": ("POST", "/admin/v2/{topic}/createMissedPartitions", None),
    "delete": ("DELETE", "/admin/v2/{topic}?force={force}", None),
    "delete partitioned": ("DELETE", "/admin/v2/{topic}/partitions?force={force}", None),
    "create subscription": ("PUT", f"/admin/v2/{{topic}}/subscription/{SUBSCRIPTION}", None),
}

_LINES: Final[Mapping[str, str]] = {
    "partitions": "topics get-partitioned-topic-metadata {topic}",
    "http lookup": "topics lookup {topic}",
    "stats": "topics stats {topic}",
    "list": "topics list {namespace}",
    "list partitioned": "topics list-partitioned-topics {namespace}",
    "create": "topics create {topic}",
    "create partitioned": "topics create-partitioned-topic {topic} -p {count}",
    "expand": "topics update-partitioned-topic {topic} -p {count}",
    "create missed": "topics create-missed-partitions {topic}",
    "delete": "topics delete {topic}",
    "delete partitioned": "topics delete-partitioned-topic {topic}",
    "create subscription": f"topics create-subscription {{topic}} -s {SUBSCRIPTION}",
}
