"""The printed forms, compared with what Apache Pulsar's own tool prints."""

import pytest

from interpulse.cli.output import print_json, print_lines, print_pairs, to_pretty_json

INTERNAL_STATS = """\
{
  "totalSize" : 0,
  "averageMsgSize" : 0.0,
  "state" : "LedgerOpened",
  "ledgers" : [ {
    "ledgerId" : 48,
    "offloaded" : false
  }, {
    "ledgerId" : 49,
    "offloaded" : true
  } ],
  "cursors" : {
    "s" : {
      "individuallyDeletedMessages" : "[]",
      "properties" : { }
    }
  },
  "boundaries" : [ "0x00000000", "0x40000000" ],
  "none" : [ ],
  "text" : "a\\"b\\\\ü"
}"""


def test_object_when_printed_then_looks_as_from_pulsar_admin() -> None:
    value = {
        "totalSize": 0,
        "averageMsgSize": 0.0,
        "state": "LedgerOpened",
        "ledgers": [{"ledgerId": 48, "offloaded": False}, {"ledgerId": 49, "offloaded": True}],
        "cursors": {"s": {"individuallyDeletedMessages": "[]", "properties": {}}},
        "boundaries": ["0x00000000", "0x40000000"],
        "none": [],
        "text": 'a"b\\ü',
    }
    assert to_pretty_json(value) == INTERNAL_STATS


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null"), (True, "true"), (7, "7"), ("x", '"x"'), (("x",), '[ "x" ]'), ({}, "{ }")]
)
def test_simple_value_when_printed_then_is_json(value: object, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_json(value)
    assert capsys.readouterr().out == f"{text}\n"


def test_list_when_printed_then_has_one_item_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(["a", "b"])
    assert capsys.readouterr().out == "a\nb\n"


def test_pairs_when_printed_then_have_four_blanks_between(capsys: pytest.CaptureFixture[str]) -> None:
    print_pairs({"a": 1, "b": "x"})
    assert capsys.readouterr().out == "a    1\nb    x\n"
