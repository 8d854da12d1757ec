"""``topics``: who serves a topic, its partitions, or many topics."""

import json
from collections.abc import Sequence
from typing import Any

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

PARTITIONS = "/admin/v2/persistent/t/ns/a/partitions"
ONE, TWO = "persistent://t/ns/a-partition-0", "persistent://t/ns/a-partition-1"


def group(url: str, topics: Sequence[str], response: str = "Connect") -> dict[str, Any]:
    return {"brokerUrl": url, "response": response, "topics": list(topics)}


def offer_batches(web: StubWeb, *groups: dict[str, Any], failures: Sequence[dict[str, Any]] = ()) -> None:
    web.answer("POST", "/lookup/v2/topics", {"groups": groups, "failures": failures, "partitions": {}})


def single_path(topic: str) -> str:
    return f"/lookup/v2/topic/{topic.replace('://', '/')}"


def refuse_batches(web: StubWeb) -> None:
    """As a broker that has never heard of them."""
    web.answer_raw("POST", "/lookup/v2/topics", b"<html>Not Found</html>", status=404, content_type="text/html")


def test_lookup_when_asked_then_prints_the_broker(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/lookup/v2/topic/persistent/t/ns/a", {"brokerUrl": "pulsar://b:1", "brokerUrlTls": ""})
    assert run_admin("topics", "lookup", "t/ns/a").stdout == "pulsar://b:1\n"


def test_partitioned_lookup_when_batches_are_offered_then_asks_one_question(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", PARTITIONS, {"partitions": 2})
    offer_batches(web, group("pulsar://b:1", [ONE, TWO]))
    lookup = run_admin("topics", "partitioned-lookup", "t/ns/a")
    assert lookup.stdout == f"{ONE}    pulsar://b:1\n{TWO}    pulsar://b:1\n"
    assert [asked.method for asked in web.asked] == ["GET", "POST"]
    assert web.last.body["topics"] == [ONE, TWO]
    by_broker = run_admin("topics", "partitioned-lookup", "t/ns/a", "--sort-by-broker")
    assert by_broker.stdout == f"pulsar://b:1    [{ONE}, {TWO}]\n"


def test_partitioned_lookup_when_the_broker_is_older_then_prints_the_same(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", PARTITIONS, {"partitions": 2})
    refuse_batches(web)
    for topic in (ONE, TWO):
        web.answer("GET", single_path(topic), {"brokerUrl": "pulsar://b:1"})
    lookup = run_admin("topics", "partitioned-lookup", "t/ns/a")
    assert lookup.stdout == f"{ONE}    pulsar://b:1\n{TWO}    pulsar://b:1\n"
    by_broker = run_admin("topics", "partitioned-lookup", "t/ns/a", "-s")
    assert by_broker.stdout == f"pulsar://b:1    [{ONE}, {TWO}]\n"


def test_partitioned_lookup_when_topic_is_plain_then_fails(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", PARTITIONS, {"partitions": 0})
    result = run_admin("topics", "partitioned-lookup", "t/ns/a")
    assert result.exit_code == 1
    assert "Topic persistent://t/ns/a is not a partitioned topic" in result.stderr


def test_partitioned_lookup_when_one_partition_has_no_broker_then_fails(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", PARTITIONS, {"partitions": 2})
    failure = {"code": 6, "status": 503, "reason": "no broker", "topics": [TWO]}
    offer_batches(web, group("pulsar://b:1", [ONE]), failures=[failure])
    result = run_admin("topics", "partitioned-lookup", "t/ns/a")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: no broker\n")


def test_batch_lookup_when_asked_then_prints_each_topic_once_in_order(web: StubWeb, run_admin: RunAdmin) -> None:
    offer_batches(web, group("pulsar://b:1", [TWO]), group("pulsar://c:1", [ONE]))
    result = run_admin("topics", "batch-lookup", ONE, TWO, ONE)
    assert (result.exit_code, result.stdout) == (0, f"{ONE}    pulsar://c:1\n{TWO}    pulsar://b:1\n")
    assert (
        run_admin("topics", "batch-lookup", ONE, TWO, "-s").stdout
        == f"pulsar://c:1    [{ONE}]\npulsar://b:1    [{TWO}]\n"
    )


def test_lookups_by_broker_when_another_form_is_chosen_then_topics_are_a_list(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", PARTITIONS, {"partitions": 2})
    offer_batches(web, group("pulsar://b:1", [ONE, TWO]))
    for command in (["partitioned-lookup", "t/ns/a"], ["batch-lookup", ONE, TWO]):
        result = run_admin("topics", *command, "-s", "-o", "json")
        assert json.loads(result.stdout) == {"pulsar://b:1": [ONE, TWO]}


def test_batch_lookup_when_one_topic_fails_then_prints_the_others_and_says_which(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    failure = {"code": 11, "status": 404, "reason": "Namespace t/ns does not exist", "topics": [TWO]}
    offer_batches(web, group("pulsar://b:1", [ONE]), failures=[failure])
    result = run_admin("topics", "batch-lookup", ONE, TWO)
    assert (result.exit_code, result.stdout) == (1, f"{ONE}    pulsar://b:1\n")
    assert f"{TWO}: Namespace t/ns does not exist\n" in result.stderr
    assert "1 of 2 topics have no broker" in result.stderr


def test_batch_lookup_when_a_group_redirects_then_its_topics_are_asked_for_singly(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    offer_batches(web, group("pulsar://b:1", [ONE]), group("pulsar://c:1", [TWO], response="Redirect"))
    web.answer("GET", single_path(TWO), {"brokerUrl": "pulsar://d:1"})
    result = run_admin("topics", "batch-lookup", ONE, TWO)
    assert result.stdout == f"{ONE}    pulsar://b:1\n{TWO}    pulsar://d:1\n"


def test_batch_lookup_without_topics_is_wrong_usage(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("topics", "batch-lookup").exit_code == 2
    assert run_admin("topics", "batch-lookup", "a/b").exit_code == 2
    assert web.asked == []


def test_bundle_range_when_asked_then_is_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer_raw("GET", "/lookup/v2/topic/persistent/t/ns/a/bundle", b"0x00_0xff")
    assert run_admin("topics", "bundle-range", "t/ns/a").stdout == "0x00_0xff\n"
