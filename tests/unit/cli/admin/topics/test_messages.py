"""The commands that show single messages, in the form that pulsar-admin has."""

import json

import pytest

from interpulse.cli.admin.topics.messages import hex_dump
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/persistent/t/ns/a"
HEADERS = {
    "X-Pulsar-Message-ID": "3:4",
    "X-Pulsar-PROPERTY": '{"a":"b","c":"d"}',
    "X-Pulsar-publish-time": "1970-01-01T00:00:01Z",
    "X-Pulsar-event-time": "1970-01-01T00:00:02Z",
    "X-Pulsar-producer-name": "p",
    "X-Pulsar-sequence-id": "7",
    "X-Pulsar-partition-key": "k",
}
DUMP = """\
         +-------------------------------------------------+
         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
+--------+-------------------------------------------------+----------------+
|00000000| 68 69                                           |hi              |
+--------+-------------------------------------------------+----------------+
"""
FORM = f"Message ID: 3:4\nPublish time: 1000\nEvent time: 2000\nProperties:\na    b\nc    d\n{DUMP}"


def test_dump_when_longer_than_a_row_then_goes_on_below() -> None:
    rows = hex_dump(bytes(range(0x41, 0x52)) + b"\x00\xff").splitlines()[3:-1]
    assert rows == [
        "|00000000| 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50 |ABCDEFGHIJKLMNOP|",
        "|00000010| 51 00 ff                                        |Q..             |",
    ]
    assert hex_dump(b"") == ""


def test_peek_when_there_are_two_then_a_line_is_between(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer_raw("GET", f"{ROOT}/subscription/s/position/1", b"hi", headers=HEADERS)
    web.answer_raw("GET", f"{ROOT}/subscription/s/position/2", b"hi", headers=HEADERS)
    web.answer("GET", f"{ROOT}/subscription/s/position/3", {"reason": "Message not found"}, status=404)
    result = run_admin("topics", "peek-messages", "t/ns/a", "-s", "s", "-n", "5")
    assert (result.exit_code, result.stdout) == (0, f"{FORM}{'-' * 73}\n\n{FORM}")


def test_peek_when_there_is_none_then_prints_nothing(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/subscription/s/position/1", {"reason": "Message not found"}, status=404)
    assert run_admin("topics", "peek-messages", "t/ns/a", "-s", "s").output == ""


def test_peek_when_wanted_as_json_then_messages_are_objects(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer_raw("GET", f"{ROOT}/subscription/s/position/1", b"hi", headers=HEADERS)
    web.answer_raw("GET", f"{ROOT}/subscription/s/position/2", b"\xff", headers=HEADERS)
    result = run_admin("topics", "peek-messages", "t/ns/a", "-s", "s", "-n", "2", "-o", "json")
    text, binary = json.loads(result.stdout)
    assert text == {
        "messageId": "3:4:-1",
        "publishTime": 1000,
        "eventTime": 2000,
        "key": "k",
        "properties": {"a": "b", "c": "d"},
        "content": "hi",
    }
    assert binary["contentBase64"] == "/w=="


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ("examine-messages t/ns/a", "examinemessage?initialPosition=latest&messagePosition=1"),
        ("examine-messages t/ns/a -i earliest -m 2", "examinemessage?initialPosition=earliest&messagePosition=2"),
        ("get-message-by-id t/ns/a -l 3 -e 4", "ledger/3/entry/4"),
    ],
)
def test_message_when_asked_for_then_is_shown(web: StubWeb, run_admin: RunAdmin, arguments: str, target: str) -> None:
    web.answer_raw("GET", f"{ROOT}/{target.partition('?')[0]}", b"hi", headers=HEADERS)
    result = run_admin("topics", *arguments.split())
    assert result.stdout.replace("Redelivery count: 0\n", "") == FORM
    assert ("Redelivery" in result.stdout) == arguments.startswith("get")
    assert web.last.target == f"{ROOT}/{target}"


@pytest.mark.parametrize(
    ("moment", "time_ms"),
    [
        ("2001-01-01T00:00:00Z", 978_307_200_000),
        ("2001-01-01T01:00:00.123+01:00", 978_307_200_123),
        ("2001-01-01T00:00:00.123456789Z", 978_307_200_123),
    ],
)
def test_message_id_when_asked_for_by_time_then_is_printed(
    web: StubWeb, run_admin: RunAdmin, moment: str, time_ms: int
) -> None:
    web.answer("GET", f"{ROOT}/messageid/{time_ms}", {"ledgerId": 3, "entryId": 4})
    result = run_admin("topics", "get-message-id", "t/ns/a", "-d", moment)
    assert result.stdout == '{\n  "ledgerId" : 3,\n  "entryId" : 4\n}\n'


def test_last_message_id_when_asked_for_then_is_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/lastMessageId", {"ledgerId": 1})
    assert run_admin("topics", "last-message-id", "t/ns/a").stdout == '{\n  "ledgerId" : 1\n}\n'


@pytest.mark.parametrize(
    "arguments",
    [
        "peek-messages t/ns/a",
        "peek-messages t/ns/a -s s -n 0",
        "peek-messages t/ns/a -s s -til NONE",
        "examine-messages t/ns/a -i middle",
        "examine-messages t/ns/a -m 0",
        "get-message-by-id t/ns/a -l 1",
        "get-message-by-id t/ns/a -l x -e 1",
        "get-message-id t/ns/a -d yesterday",
        "get-message-id t/ns/a -d 2001-13-01T00:00:00Z",
        "get-message-id t/ns/a -d 2001-01-01T00:00:00",
    ],
)
def test_question_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, arguments: str
) -> None:
    result = run_admin("topics", *arguments.split())
    assert (result.exit_code, web.asked) == (2, [])


def test_backlog_size_when_asked_for_then_is_a_number(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("PUT", f"{ROOT}/backlogSize", 375)
    assert run_admin("topics", "get-backlog-size", "t/ns/a", "-m", "3:4").stdout == "375\n"
    assert web.last.body == {"ledgerId": 3, "entryId": 4, "partitionIndex": -1, "batchIndex": -1}
    assert run_admin("topics", "get-backlog-size", "t/ns/a").exit_code == 0
    assert (web.last.body["ledgerId"], web.last.body["entryId"]) == (-1, -1)
