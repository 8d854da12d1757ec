"""``schemas``; the printed forms are those of Apache Pulsar's own tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from interpulse.cli.admin.schemas import read_schema_file
from interpulse.cli.support.running import CommandFailed
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/schemas/t/ns/a"
RECORD = '{"type":"record","name":"P","fields":[{"name":"a","type":"int"}]}'
AVRO = {"version": 1, "type": "JSON", "timestamp": 7, "data": RECORD, "properties": {"b": "2", "a": "1"}}
PAIR = {
    "version": 0,
    "type": "KEY_VALUE",
    "timestamp": 7,
    "data": f'{{"key":{RECORD},"value":""}}',
    "properties": {
        "key.schema.name": "",
        "key.schema.type": "JSON",
        "key.schema.properties": '{"x":"y"}',
        "value.schema.name": "String",
        "value.schema.type": "STRING",
        "value.schema.properties": "{}",
        "kv.encoding.type": "SEPARATED",
    },
}
PRINTED = """\
{
  "version": 1,
  "schemaInfo": {
    "name": "a",
    "schema": {
      "type": "record",
      "name": "P",
      "fields": [
        {
          "name": "a",
          "type": "int"
        }
      ]
    },
    "type": "JSON",
    "timestamp": 7,
    "properties": {
      "a": "1",
      "b": "2"
    }
  }
}
"""


def test_get_when_no_version_is_given_then_prints_it_with_the_newest(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/schema", AVRO)
    assert run_admin("schemas", "get", "t/ns/a-partition-0").stdout == PRINTED


def test_get_when_version_is_given_then_prints_the_schema_alone(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/schema/1", AVRO)
    printed = json.loads(run_admin("schemas", "get", "t/ns/a", "-v", "1").stdout)
    assert printed == json.loads(PRINTED)["schemaInfo"]


def test_get_when_schema_is_a_pair_then_shows_both_parts(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/schema", PAIR)
    schema = json.loads(run_admin("schemas", "get", "t/ns/a").stdout)["schemaInfo"]["schema"]
    key = {"name": "", "schema": json.loads(RECORD), "type": "JSON", "timestamp": 0, "properties": {"x": "y"}}
    assert schema == {
        "key": key,
        "value": {"name": "String", "schema": "", "type": "STRING", "timestamp": 0, "properties": {}},
    }


def test_get_when_all_versions_are_wanted_then_prints_each(web: StubWeb, run_admin: RunAdmin) -> None:
    text = {"version": 2, "type": "STRING", "timestamp": 8, "data": "", "properties": {}}
    web.answer("GET", f"{ROOT}/schemas", {"getSchemaResponses": [AVRO, text]})
    output = run_admin("schemas", "get", "t/ns/a", "-a").stdout
    assert output.count('  "name" : "a",\n') == 2
    assert f'"schemaDefinition" : {json.dumps(RECORD)}' in output
    assert '"schema" : "",\n  "type" : "STRING"' in output


def test_get_when_one_and_all_versions_are_wanted_then_is_wrong_usage(run_admin: RunAdmin) -> None:
    assert run_admin("schemas", "get", "t/ns/a", "-a", "-v", "1").exit_code == 2


def test_upload_when_file_is_good_then_registers_it(web: StubWeb, run_admin: RunAdmin, tmp_path: Path) -> None:
    body = {"type": "JSON", "schema": RECORD, "properties": {"a": "b"}}
    web.answer("POST", f"{ROOT}/schema", {"version": {"version": 0}})
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(body))
    assert run_admin("schemas", "upload", "t/ns/a", "-f", str(file)).exit_code == 0
    assert web.last.body == body


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"type": "NOPE"}', '{"type": "KEY_VALUE", "schema": "x"}'])
def test_upload_when_file_holds_no_schema_then_says_so(
    web: StubWeb, run_admin: RunAdmin, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(content)
    result = run_admin("schemas", "upload", "t/ns/a", "-f", str(file))
    assert (result.exit_code, web.asked) == (2, [])
    assert f"{file} is not a schema" in result.stderr


def test_upload_when_file_is_missing_then_says_so(run_admin: RunAdmin) -> None:
    result = run_admin("schemas", "upload", "t/ns/a", "-f", "/nowhere.json")
    assert (result.exit_code, result.stderr) == (2, "Error: /nowhere.json cannot be read: No such file or directory\n")


@pytest.mark.parametrize(("options", "force"), [((), "false"), (("-f",), "true")])
def test_delete_when_forced_then_says_so(
    web: StubWeb, run_admin: RunAdmin, options: tuple[str, ...], force: str
) -> None:
    web.answer("DELETE", f"{ROOT}/schema", {"version": 1})
    assert run_admin("schemas", "delete", "t/ns/a", *options).exit_code == 0
    assert web.last.target == f"{ROOT}/schema?force={force}"


def test_text_when_not_ascii_then_is_printed_as_it_is(web: StubWeb, run_admin: RunAdmin) -> None:
    answer: dict[str, Any] = AVRO | {"properties": {"a": "ü"}}
    web.answer("GET", f"{ROOT}/schema", answer)
    assert '"a": "ü"' in run_admin("schemas", "get", "t/ns/a").stdout


@pytest.mark.parametrize(("compatible", "exit_code"), [(True, 0), (False, 1)])
def test_compatibility_when_asked_then_prints_the_answer_and_fails_if_it_is_no(
    web: StubWeb, run_admin: RunAdmin, tmp_path: Path, compatible: bool, exit_code: int
) -> None:
    body = {"type": "JSON", "schema": RECORD, "properties": {}}
    web.answer("POST", f"{ROOT}/compatibility", {"schemaCompatibilityStrategy": "FULL", "compatibility": compatible})
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(body))
    result = run_admin("schemas", "compatibility", "t/ns/a", "-f", str(file))
    assert result.exit_code == exit_code
    word = "true" if compatible else "false"
    assert result.stdout == f'{{\n  "schemaCompatibilityStrategy" : "FULL",\n  "compatibility" : {word}\n}}\n'
    assert ("not compatible with those of persistent://t/ns/a by the strategy FULL" in result.stderr) == (
        not compatible
    )
    assert web.last.body == body


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"7\xe4d-secret", "it is not UTF-8 text"),
        (b'{"secret":\n secret}', "it is not JSON at line 2, column 2"),
        (b'["secret"]', "expected an object with type and schema, both strings"),
        (b'{"schema": "secret"}', "expected an object with type and schema, both strings"),
        (b'{"type": "FOO", "schema": "secret"}', "type 'FOO' is unknown; valid are "),
        (b'{"type": "STRING", "properties": ["secret"]}', "expected an object with type and schema, both strings"),
        (b'{"type": "KEY_VALUE", "schema": "secret"}', "its schema is not a definition of the type KEY_VALUE"),
    ],
)
def test_schema_file_when_it_is_none_then_a_sentence_says_why_without_its_content(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(CommandFailed) as refused:
        read_schema_file(str(path))
    assert refused.value.exit_code == 2
    assert f"{path} is not a schema: {said}" in refused.value.message
    assert "secret" not in refused.value.message
