"""The printed forms, compared with what Apache Pulsar's own tool prints."""

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin
from interpulse.terminal.output import (
    format_option,
    print_documents,
    print_json,
    print_lines,
    print_pairs,
    print_text,
    to_pretty_json,
)

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


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["show"], "a\nb\n"),
        (["-o", "json", "show"], '[\n  "a",\n  "b"\n]\n'),
        (["show", "-o", "yaml"], "- a\n- b\n"),
        (["--output", "json", "show", "--output", "table"], "VALUE\na\nb\n"),
        (["show", "text", "-o", "json"], '"a"\n'),
        (["show", "pairs", "-o", "yaml"], "k: v\n"),
        (["show", "documents"], '{\n  "a" : 1\n}\n{ }\n'),
        (["show", "documents", "-o", "yaml"], "- a: 1\n- {}\n"),
        (["show", "nothing"], ""),
        (["show", "nothing", "-o", "json"], "[]\n"),
    ],
)
def test_result_when_a_form_is_chosen_then_takes_it_wherever_the_option_stands(
    arguments: list[str], printed: str
) -> None:
    @click.group()
    @format_option()
    def group() -> None:
        pass

    @group.command()
    @click.argument("what", default="lines")
    @format_option(hidden=True)
    def show(what: str) -> None:
        match what:
            case "lines":
                print_lines(["a", "b"])
            case "text":
                print_text("a")
            case "pairs":
                print_pairs({"k": "v"})
            case "documents":
                print_documents([{"a": 1}, {}])
            case _:
                print_lines([])

    result = CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, printed)


def test_form_when_unknown_then_is_wrong_usage() -> None:
    result = CliRunner().invoke(admin, ["topics", "list", "t/ns", "-o", "xml"])
    assert result.exit_code == 2
    assert "'xml' is not one of 'json', 'yaml', 'table'" in result.output
