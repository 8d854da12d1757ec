"""The commands of pulsar-admin: each is offered, or says why it is not."""

import click
import pytest

from interpulse.cli.admin.admin import admin
from interpulse.cli.support.pulsar_admin_tree import ABSENT_GROUPS, TREE, reason_for
from interpulse.model.not_offered import NotOffered
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

OFFERED_GROUPS = sorted(set(TREE) - set(ABSENT_GROUPS))


def offered(group: str) -> set[str]:
    command = admin.get_command(click.Context(admin), group)
    assert isinstance(command, click.Group)
    return set(command.commands)


@pytest.mark.parametrize("group", OFFERED_GROUPS)
def test_command_that_only_pulsar_has_is_refused_without_a_server(
    group: str, web: StubWeb, run_admin: RunAdmin
) -> None:
    for name in sorted(TREE[group] - offered(group)):
        result = run_admin(group, name, "a/b", "--any", "option", "--help")
        sentence = f"Error: Apache Pulsar has the command {group} {name}, Interpulse does not offer it"
        assert (result.exit_code, result.stdout) == (6, "")
        assert result.stderr.startswith(sentence)
        assert result.stderr.count("\n") == 1
    assert web.asked == []


@pytest.mark.parametrize("group", sorted(ABSENT_GROUPS))
def test_group_when_nothing_of_it_is_offered_then_says_why(group: str, run_admin: RunAdmin) -> None:
    result = run_admin(group, "anything", "--at", "all")
    sentence = f"Error: Apache Pulsar has the command {group}, Interpulse does not offer it: {ABSENT_GROUPS[group]}\n"
    assert (result.exit_code, result.stderr) == (6, sentence)


@pytest.mark.parametrize("group", OFFERED_GROUPS)
def test_group_when_offered_then_has_commands_of_pulsar(group: str) -> None:
    assert TREE[group] & offered(group)


def test_reasons_of_single_commands_are_those_of_the_admin_api() -> None:
    told = {reason_for(group, name) for group in OFFERED_GROUPS for name in TREE[group] - offered(group)}
    assert all(isinstance(reason, NotOffered) for reason in told - {""})


@pytest.mark.parametrize(
    ("group", "command"), [("namespaces", "destinations"), ("namespaces", "list-cluster"), ("schemas", "metadata")]
)
def test_hidden_and_older_commands_of_pulsar_are_in_the_tree(group: str, command: str, run_admin: RunAdmin) -> None:
    assert run_admin(group, command).exit_code == 6


def test_command_when_the_broker_does_not_offer_it_then_has_the_same_exit_code(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", "/admin/v2/tenants", {"reason": "this broker does not offer it"}, status=501)
    assert run_admin("tenants", "list").exit_code == 6


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["topcs", "list"], "No such command 'topcs'. Did you mean 'topics'?"),
        (["topics", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["topics", "zzz"], "No such command 'zzz'."),
    ],
)
def test_name_when_unknown_then_the_nearest_is_named(run_admin: RunAdmin, arguments: list[str], advice: str) -> None:
    result = run_admin(*arguments)
    assert result.exit_code == 2
    assert advice in result.stderr


def test_help_when_80_columns_are_there_then_every_sentence_is_whole(run_admin: RunAdmin) -> None:
    for group in OFFERED_GROUPS:
        text = run_admin(group, "--help").stdout
        assert "..." not in text.partition("\n")[2]
        assert max(map(len, text.splitlines())) <= 80
    assert (
        "set|get|remove-retention    Set how long acknowledged messages are kept." in run_admin("topics", "-h").stdout
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("schemas extract -j a.jar -c org.X -t avro t", "Classes of Java (-j and -c) are not read"),
        ("topicPolicies get-subscription-dispatch-rate -s x t", "The dispatch rate of a single subscription (-s)"),
        (
            "topicPolicies set-subscription-dispatch-rate t -s x -md 1",
            "The dispatch rate of a single subscription (-s)",
        ),
    ],
)
def test_option_when_pulsar_has_it_and_we_do_not_then_says_so(line: str, words: str, run_admin: RunAdmin) -> None:
    result = run_admin(*line.split())
    assert result.exit_code == 6
    assert result.stderr.startswith(f"Error: {words}")
