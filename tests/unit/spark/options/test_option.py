"""Options: names without case, aliases, all problems at once."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.replication.setting_values import parse_duration_ms, parse_size
from interpulse.spark.options.connection_options import Access, access_as_options, admin_client
from interpulse.spark.options.option import OptionError, Purpose, replacement_of
from interpulse.spark.reading.read_options import ReadOptions, parse_read_options
from interpulse.spark.writing.write_options import WriteOptions, parse_write_options
from tools.generate_spark_reference import documented_options

URL = {"service.url": "pulsar://127.0.0.1:6650"}
BASIC = {"pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationBasic"}
JO = '{"userId": "jo", "password": "word"}'
OAUTH2 = {"pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"}
GRANT = '{"issuerUrl": "https://issuer", "privateKey": "file:///jo.json"}'


def test_keys_are_found_in_any_letter_case():
    options = parse_read_options({"SERVICE.URL": "pulsar://a:1", "TOPIC": "x", "maxentriespertrigger": "5"})
    assert options.service_url == "pulsar://a:1"
    assert options.topics == ("persistent://public/default/x",)
    assert options.max_entries_per_trigger == 5


def test_unknown_key_is_refused_with_the_nearest_names():
    with pytest.raises(OptionError, match="unknown option 'startingOffset'; did you mean startingOffsets"):
        parse_read_options({**URL, "topic": "x", "startingOffset": "earliest"})


def test_spark_keys_are_left_alone():
    parse_read_options({**URL, "topic": "x", "path": "p", "checkpointLocation": "c"})


def test_all_problems_are_reported_together():
    with pytest.raises(OptionError) as caught:
        parse_read_options({"mode": "x", "maxPartitions": "0", "pollTimeoutMs": "soon", "nonsense": "1"})
    text = str(caught.value)
    for part in (
        "mode",
        "maxPartitions",
        "pollTimeoutMs",
        "nonsense",
        "exactly one of topic, topics",
        "service.url is required",
    ):
        assert part in text


def test_aliases_with_different_values_are_refused():
    with pytest.raises(OptionError, match=r"service\.url and serviceUrl are the same and have different values"):
        parse_read_options({**URL, "serviceUrl": "pulsar://b:1", "topic": "x"})
    assert parse_read_options({**URL, "serviceUrl": URL["service.url"], "topic": "x"}).service_url == URL["service.url"]


def test_batch_only_options_are_refused_in_streams():
    with pytest.raises(OptionError, match="endingOffsets does not apply to streams"):
        parse_read_options({**URL, "topic": "x", "endingOffsets": "latest"}, Purpose.STREAM_READ)


def test_offsets_of_reads():
    options = parse_read_options(
        {**URL, "topic": "x", "startingOffsets": '{"x": "3:4"}', "endingOffsets": '{"x": "9:9"}'}
    )
    assert options.starting_offsets == {"persistent://public/default/x": Position(3, 3)}
    assert options.ending_offsets == {"persistent://public/default/x": Position(9, 9)}
    assert parse_read_options({**URL, "topic": "x", "startingOffsets": "earliest"}).starting_offsets == EARLIEST
    assert parse_read_options({**URL, "topic": "x"}).ending_offsets == LATEST


def test_start_at_a_subscription_needs_one():
    with pytest.raises(OptionError, match="needs predefinedSubscription"):
        parse_read_options({**URL, "topic": "x", "startingOffsets": "subscription"}, Purpose.STREAM_READ)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({}, "exactly one of topic, topics"),
        ({"topic": "a", "topicsPattern": "b"}, "exactly one of topic, topics"),
        ({"topicsPattern": "("}, "not a regular expression"),
        ({"topic": "a/b"}, "Invalid topic name"),
    ],
)
def test_selection_must_be_one_and_valid(extra, problem):
    with pytest.raises(OptionError, match=problem):
        parse_read_options({**URL, **extra})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topic": "x", "includeSystemTopics": "true"}, "includeSystemTopics does nothing with topics"),
        ({"topicsFile": "x", "topicsExclude": "a"}, "topicsExclude does nothing with topicsFile"),
        ({"topicsFile": "x", "partitionDiscoveryIntervalMs": "1"}, "partitionDiscoveryIntervalMs does nothing with"),
        ({"topic": "x", "namespaces": "t/n"}, "namespaces does nothing with topics"),
        ({"topicsPattern": "t/n/x", "waitingForNonExistedTopic": "true"}, "does nothing with topicsPattern"),
        (
            {"topic": "x", "waitingForNonExistedTopic": "true", "partitionDiscoveryIntervalMs": "0"},
            "waitingForNonExistedTopic needs a partitionDiscoveryIntervalMs above 0",
        ),
        ({"topic": "x", "minPartitions": "4"}, "minPartitions splits topic-partitions: in a stream it needs"),
        ({"topic": "x", "preserveOrder": "false"}, "preserveOrder=false only counts with minPartitions"),
        ({"topic": "x", "filterPushdown": "true"}, "filterPushdown does not apply to streams"),
    ],
)
def test_read_options_that_would_do_nothing_are_refused(given, problem):
    with pytest.raises(OptionError, match=problem):
        parse_read_options({**URL, **given}, Purpose.STREAM_READ)


def test_read_options_that_do_something_are_taken():
    parse_read_options({**URL, "topic": "x", "topicsExclude": "a"})
    parse_read_options({**URL, "topicsPattern": "t/n/.*", "includeSystemTopics": "true", "topicsExclude": "a"})


@pytest.mark.parametrize(("mode", "dedup"), [("entry", "position"), ("message", "batch")])
def test_exactly_once_alone_is_enough(mode, dedup):
    options = parse_write_options({**URL, "deliveryGuarantee": "exactly-once", "mode": mode}, Purpose.STREAM_WRITE)
    assert (options.dedup, options.exactly_once, options.create_topics) == (dedup, True, "false")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"mode": "entry", "replicatedFrom": "a"}, 'add .option("targetCluster", "<name of that cluster>")'),
        ({"mode": "entry", "targetCluster": "a"}, 'add .option("replicatedFrom", "<name of that cluster>")'),
        ({"dedup": "position"}, 'add .option("mode", "entry"), or leave dedup out'),
        ({"mode": "entry", "dedup": "column"}, "dedup=column counts messages, and mode=entry writes entries"),
        ({"dedup": "none"}, "deliveryGuarantee=exactly-once excludes dedup=none"),
        ({"replicatedFrom": "a", "targetCluster": "b"}, "replicatedFrom only counts with mode=entry"),
        ({"createTopics": "auto"}, "leave createTopics out"),
        ({"mode": "entry", "forward": "origin"}, "forward=origin only counts with replicatedFrom and targetCluster"),
        ({"forward": "origin"}, "forward only counts with mode=entry"),
    ],
)
def test_exactly_once_asks_for_what_it_lacks_in_a_sentence(given, asked):
    with pytest.raises(OptionError) as caught:
        parse_write_options({**URL, "deliveryGuarantee": "exactly-once", **given}, Purpose.STREAM_WRITE)
    assert asked in str(caught.value)


def test_exactly_once_is_not_for_batches():
    for given in ({"deliveryGuarantee": "exactly-once"}, {"dedup": "column"}):
        with pytest.raises(OptionError, match=r"^exactly-once is for streams.*availableNow"):
            parse_write_options({**URL, **given}, Purpose.BATCH_WRITE)


def test_write_options_have_sober_defaults():
    options = parse_write_options({**URL, "topic": "x"})
    assert options.dedup == "none"
    assert not options.exactly_once


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"statePath": "p"}, "statePath only counts with deliveryGuarantee=exactly-once"),
        ({"isolate": "true"}, "isolate only counts with deliveryGuarantee=exactly-once"),
        ({"mode": "entry", "compressionType": "zstd"}, "compressionType only counts with mode=message"),
        ({"schemaSourceUrl": "pulsar://b:1"}, "schemaSourceUrl only counts with mode=entry"),
        ({"schemaSourceAuthToken": "t"}, "access to schemaSource only counts with mode=entry"),
        ({"mode": "entry", "schemaSourceAuthToken": "t"}, "access to schemaSource only counts with schemaSourceUrl"),
        ({"createTopics": "4"}, r"createTopics=4 needs admin\.url"),
        ({"createTopics": "many"}, "'many' is neither auto nor false nor a number of partitions"),
        ({"mode": "entry", "dedup": "position", "createTopics": "auto"}, "leave createTopics out"),
    ],
)
def test_write_options_that_would_do_nothing_are_refused(given, problem):
    with pytest.raises(OptionError, match=problem):
        parse_write_options({**URL, "topic": "x", **given})


def test_admin_url_is_taken_by_every_read_and_write():
    admin = {"pulsar.admin.serviceUrl": "http://b:1", "topic": "x"}
    for purpose in (Purpose.BATCH_READ, Purpose.STREAM_READ):
        assert parse_read_options({**URL, **admin}, purpose).admin_url == "http://b:1"
    for purpose in (Purpose.BATCH_WRITE, Purpose.STREAM_WRITE):
        assert parse_write_options({**URL, **admin}, purpose).admin_url == "http://b:1"
    lane = {"mode": "entry", "dedup": "position", "producerName": "l", "replicatedFrom": "a", "targetCluster": "b"}
    parse_write_options({**URL, **admin, **lane, "assumeDeduplication": "true"})


@pytest.mark.parametrize(
    ("given", "creation"),
    [({}, "auto"), ({"mode": "entry"}, "false"), ({"mode": "entry", "createTopics": "AUTO"}, "auto")],
)
def test_messages_go_to_topics_as_any_producer_opens_them_and_entries_to_those_that_are_there(given, creation):
    assert parse_write_options({**URL, "topic": "x", **given}).create_topics == creation


def test_topics_are_created_with_a_number_of_partitions_through_the_admin_api():
    assert parse_write_options({**URL, "topic": "x", "createTopics": "4", "admin.url": "http://b:1"}).create_topics == 4


@pytest.mark.parametrize(
    ("text", "expected"), [("500", 500), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("-1", -1)]
)
def test_durations(text, expected):
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("10", 10), ("64k", 65536), ("64m", 64 << 20), ("1g", 1 << 30)])
def test_sizes(text, expected):
    assert parse_size(text) == expected


def test_every_option_is_documented():
    rows = documented_options(read=ReadOptions, write=WriteOptions)
    assert len({(row[0], row[2]) for row in rows}) == len(rows)
    assert all(row[4] for row in rows)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingTime": "1", "startingOffsets": "earliest"}, "startingOffsets and startingTime exclude each other"),
        ({"endingTime": "1", "endingOffsets": '{"x": "1:1"}'}, "endingOffsets and endingTime exclude each other"),
        ({"startingOffsetsByTimestampStrategy": "latest"}, "only counts with startingTime"),
    ],
)
def test_times_and_offsets_that_do_not_go_together(given, said):
    with pytest.raises(OptionError, match=said):
        parse_read_options({**URL, "topic": "x", **given}, Purpose.BATCH_READ)


def test_partitions_are_assigned():
    given = parse_read_options({**URL, "assign": '{"x": [0, 2]}'})
    assert given.assigned == tuple(f"persistent://public/default/x-partition-{index}" for index in (0, 2))
    for text in ("x", '{"x": 1}', "[]", '{"x": []}'):
        with pytest.raises(OptionError, match="assign"):
            parse_read_options({**URL, "assign": text})


@pytest.mark.parametrize(
    ("given", "method", "source"),
    [
        ({"authTokenFile": "/t.jwt"}, "token", "file:/t.jwt"),
        ({"pulsar.client.authParams": "token:abc"}, "token", "token:abc"),
        (
            {
                "pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
                "pulsar.client.authParams": '{"token": "abc"}',
            },
            "token",
            "token:abc",
        ),
        ({**BASIC, "pulsar.client.authParams": JO}, "basic", JO),
        ({**BASIC, "authToken": "jo:word"}, "basic", JO),
        ({**BASIC, "pulsar.client.authParams": "file:///jo"}, "basic", "file:///jo"),
        ({**BASIC, "pulsar.client.authParams": "env:JO"}, "basic", "env:JO"),
        ({**OAUTH2, "pulsar.client.authParams": GRANT}, "oauth2", GRANT),
    ],
)
def test_ways_to_authenticate(given, method, source):
    access = parse_read_options({**URL, "topic": "x", **given}).access
    assert access.credentials is not None
    assert (access.credentials.method, access.credentials.source) == (method, source)
    assert access.rereads_credentials == (method == "oauth2" or source.startswith("file:"))
    for prefix in ("", "schemaSource"):
        options = {**URL, "schemaSourceUrl": "pulsar://a:1", "topic": "x", "mode": "entry"}
        written = parse_write_options({**options, **access_as_options(access, prefix)}, Purpose.BATCH_WRITE)
        assert (written.schema_source_access if prefix else written.access).credentials == access.credentials


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"authTokenFile": "/t.jwt", "authToken": "secret"}, "authTokenFile excludes authToken"),
        ({"pulsar.client.authPluginClassName": "x.AuthenticationAthenz"}, "AuthenticationAthenz is not supported"),
        (
            {**BASIC, "pulsar.client.authParams": "jo:secret"},
            "authParams: Spark would show it in plans .*file:///path",
        ),
        ({"pulsar.client.authParams": "secret"}, "authParams: Spark would show it .* or write token:"),
        ({"pulsar.admin.authParams": "secret"}, "option pulsar.admin.authParams: Spark would show it"),
        ({**BASIC, "authToken": "secret"}, "basic authentication needs"),
        ({**BASIC, "pulsar.client.authParams": '{"password":"secret"}'}, "JSON with the field userId"),
        ({**OAUTH2, "pulsar.client.authParams": '{"client_secret":"secret"}'}, "issuerUrl is missing"),
        ({"mode": "entry", "startingOffsets": '{"x": "1:2:3"}'}, "batch index only count with mode=message"),
        ({"maxTriggerDelay": "3s"}, "maxTriggerDelay only counts with minEntriesPerTrigger"),
    ],
)
def test_what_cannot_be_used_is_told_without_secrets(given, said):
    with pytest.raises(OptionError, match=said) as refused:
        parse_read_options({**URL, "topic": "x", **given}, Purpose.STREAM_READ)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minPartitions": "5", "maxPartitions": "4"}, "minPartitions=5 is above maxPartitions=4"),
        (
            {"maxRecordsPerPartition": "5", "preserveOrder": "true"},
            "maxEntriesPerPartition splits .* preserveOrder=true",
        ),
        ({"minPartitions": "5", "planMode": "stable"}, "minPartitions only counts with planMode=balanced"),
        ({"planner": "admin"}, r"planner=admin needs admin\.url"),
        ({"keyRouting": "hash"}, "keyRouting only counts with filterPushdown=true"),
        ({"namespaces": "a", "topicsPattern": "x"}, "namespaces"),
    ],
)
def test_options_of_tasks_that_do_not_go_together(given, said):
    topics = {} if "topicsPattern" in given else {"topic": "x"}
    with pytest.raises(OptionError, match=said):
        parse_read_options({**URL, **topics, **given}, Purpose.BATCH_READ)


def test_number_of_tasks():
    assert parse_read_options({**URL, "topic": "x"}).max_partitions == 16
    assert parse_read_options({**URL, "topic": "x", "maxPartitions": "3"}).max_partitions == 3


def test_times_of_the_connection():
    given = {
        "pulsar.client.connectionTimeoutMs": "1500",
        "pulsar.client.lookupTimeoutMillis": "7s",
        "pulsar.client.keepAliveIntervalSeconds": "12",
    }
    access = parse_read_options({**URL, "topic": "x", **given}).access
    assert (access.connect_timeout_ms, access.lookup_timeout_ms, access.keep_alive_interval_ms) == (1500, 7000, 12_000)
    assert access_as_options(access) == {
        "connectionTimeoutMs": "1500",
        "lookupTimeoutMs": "7000",
        "pulsar.client.keepAliveIntervalSeconds": "12",
    }


def test_admin_api_gets_the_credentials_of_the_brokers_unless_it_has_its_own(monkeypatch):
    own = {"authToken": "a", "tlsTrustCertsFile": "/ca.pem", "admin.url": "https://b:1"}
    options = parse_read_options({**URL, "topic": "x", **own, "pulsar.admin.authParams": "token:b"})
    monkeypatch.setattr("interpulse.client.admin.admin_client.AdminClient", lambda url, **given: given)
    access = options.access
    own_admin: Any = admin_client("https://b:1", access, options.admin_access, 1000)
    assert (own_admin["credentials"].source, own_admin["tls"]) == ("token:b", access.tls)
    shared: Any = admin_client("https://b:1", access, Access(), 1000)
    assert shared["credentials"] == access.credentials


TOPIC_URL = {**URL, "topic": "x"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("kafka.bootstrap.servers", "unknown option 'kafka.bootstrap.servers': give service.url"),
        ("kafka.security.protocol", "settings of the connection begin with pulsar.client."),
        ("pulsar.client.useTls", r"give service\.url as pulsar\+ssl://"),
        ("PULSAR.READER.RECEIVERQUEUESIZE", "set fetchBufferBytes"),
    ],
)
def test_foreign_options_name_their_replacement(key, said):
    with pytest.raises(OptionError, match=said):
        parse_read_options({**TOPIC_URL, key: "1"})


def test_foreign_options_of_writes_name_their_replacement():
    with pytest.raises(OptionError, match="give batchingMaxMessages, 1 for no batches"):
        parse_write_options({**TOPIC_URL, "pulsar.producer.batchingEnabled": "false"})


def test_other_unknown_options_have_no_replacement():
    assert replacement_of("startOffsets") is None
