"""Every command against web services that answer something else than what was asked for."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin
from tests.support.stub_web import Answer, StubWeb
from tests.unit.client.admin.test_unexpected_answers import WRONG_ANSWERS

VALUES = {
    "topic": "a/b/c",
    "namespace": "a/b",
    "tenant/namespace": "a/b",
    "bundle": "0x00000000_0x40000000",
    "message id": "1:1",
    "size": "1M",
    "time": "1",
    "integer": "1",
    "integer range": "1",
    "float": "1",
    "float range": "1",
    "boolean": "true",
    "1,2,...": "1",
    "a=b,c=d,...": "a=b",
}
"""Something each type of value takes; a choice takes its first word, others take a text."""


def _commands() -> Iterator[list[str]]:
    context = click.Context(admin)
    for group in admin.list_commands(context):
        command = admin.get_command(context, group)
        assert isinstance(command, click.Group)
        for name, each in sorted(command.commands.items()):
            yield [group, name, *_required(each)]


def _required(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if not parameter.required:
            continue
        if isinstance(parameter, click.Option):
            yield parameter.opts[0]
        if isinstance(parameter.type, click.Choice):
            yield str(parameter.type.choices[0])
        else:
            yield VALUES.get(parameter.type.name, "x")


@pytest.mark.slow
@pytest.mark.parametrize("given", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_commands_when_answered_with_something_else_then_end_with_a_sentence(
    given: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    tracebacks = []
    with StubWeb(otherwise=lambda asked: given) as web:
        for arguments in _commands():
            result = CliRunner().invoke(admin, ["--admin-url", web.url, *arguments])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                tracebacks.append(f"{' '.join(arguments)}: {result.exception!r}")
    assert tracebacks == []
    assert len(web.asked) > 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topics", "compaction-status", "a/b/c"], "with something other than an object with the field 'status': {}"),
        (["topics", "lookup", "a/b/c"], "answered a lookup without the address of a broker: {}"),
        (
            ["namespaces", "set-clusters", "a/b", "-c", "x", "--preview"],
            "the runtime configuration of http://127.0.0.1:1 has no clusterName",
        ),
    ],
)
def test_command_when_the_object_is_empty_then_says_what_is_missing(arguments: list[str], words: str) -> None:
    with StubWeb(otherwise=lambda asked: WRONG_ANSWERS["an empty object"]) as web:
        result = CliRunner().invoke(admin, ["--admin-url", web.url, *arguments])
        words = words.replace("http://127.0.0.1:1", web.url)
    assert result.exit_code == 1
    assert words in result.stderr


def test_preview_when_the_configuration_is_empty_then_names_the_call(web: StubWeb) -> None:
    web.answer_raw("GET", "/admin/v2/brokers/configuration/runtime", b"")
    arguments = ["--admin-url", web.url, "namespaces", "set-clusters", "a/b", "-c", "x", "--preview"]
    result = CliRunner().invoke(admin, arguments)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {web.url} answered GET /admin/v2/brokers/configuration/runtime with something other than an object: "
        "nothing\n"
    )
