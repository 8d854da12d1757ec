"""The policies of topics on the command line, and those of namespaces that share their options."""

from typing import Any

import pytest

from interpulse.cli.topic_policies import POLICY_COMMANDS
from tests.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

TARGETS = {
    "namespaces": ("t/ns", "/admin/v2/namespaces/t/ns"),
    "topics": ("t/ns/a", "/admin/v2/persistent/t/ns/a"),
}
NO_SUBSCRIPTIONS, CAUGHT_UP = "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"


def body(mode: str, seconds: int, enabled: bool) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": enabled}


@pytest.mark.parametrize("group", TARGETS)
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (f"-e -t 10s -m {NO_SUBSCRIPTIONS}", body(NO_SUBSCRIPTIONS, 10, True)),
        (f"-d -t 5h -m {CAUGHT_UP}", body(CAUGHT_UP, 18_000, False)),
        (
            f"--enable-delete-while-inactive --max-inactive-duration 60 --delete-mode {CAUGHT_UP}",
            body(CAUGHT_UP, 60, True),
        ),
        (
            f"--disable-delete-while-inactive --max-inactive-duration 1m --delete-mode {CAUGHT_UP}",
            body(CAUGHT_UP, 60, False),
        ),
    ],
)
def test_inactive_topics_when_set_then_all_three_are_sent(
    web: StubWeb, run_admin: RunAdmin, group: str, options: str, sent: dict[str, Any]
) -> None:
    name, root = TARGETS[group]
    result = run_admin(group, "set-inactive-topic-policies", name, *options.split())
    assert (result.exit_code, result.output) == (0, "")
    assert (web.last.method, web.last.target, web.last.body) == ("POST", f"{root}/inactiveTopicPolicies", sent)


@pytest.mark.parametrize("group", TARGETS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (f"-t 10s -m {NO_SUBSCRIPTIONS}", "enable-delete-while-inactive or disable-delete-while-inactive"),
        (f"-e -d -t 10s -m {NO_SUBSCRIPTIONS}", "enable-delete-while-inactive or disable-delete-while-inactive"),
        (f"-e -m {NO_SUBSCRIPTIONS}", "--max-inactive-duration"),
        ("-e -t 10s", "--delete-mode"),
        ("-e -t 10s -m never", CAUGHT_UP),
        (f"-e -t soon -m {NO_SUBSCRIPTIONS}", "soon"),
    ],
)
def test_inactive_topics_when_options_do_not_fit_then_nothing_is_sent(
    web: StubWeb, run_admin: RunAdmin, group: str, options: str, said: str
) -> None:
    result = run_admin(group, "set-inactive-topic-policies", TARGETS[group][0], *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert said in result.stderr


PRINTED = """{
  "inactiveTopicDeleteMode" : "delete_when_no_subscriptions",
  "maxInactiveDurationSeconds" : 60,
  "deleteWhileInactive" : true
}
"""


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ("namespaces get-inactive-topic-policies t/ns", "/admin/v2/namespaces/t/ns/inactiveTopicPolicies"),
        (
            "topics get-inactive-topic-policies t/ns/a",
            "/admin/v2/persistent/t/ns/a/inactiveTopicPolicies?applied=false",
        ),
        (
            "topics get-inactive-topic-policies t/ns/a -ap",
            "/admin/v2/persistent/t/ns/a/inactiveTopicPolicies?applied=true",
        ),
        (
            "topics get-inactive-topic-policies non-persistent://t/ns/a --applied",
            "/admin/v2/non-persistent/t/ns/a/inactiveTopicPolicies?applied=true",
        ),
    ],
)
@pytest.mark.parametrize(("answer", "printed"), [(body(NO_SUBSCRIPTIONS, 60, True), PRINTED), (None, "null\n")])
def test_inactive_topics_when_asked_for_then_are_printed_as_pulsar_admin_does(
    web: StubWeb, run_admin: RunAdmin, arguments: str, target: str, answer: Any, printed: str
) -> None:
    web.answer("GET", target.partition("?")[0], answer)
    result = run_admin(*arguments.split())
    assert (result.exit_code, result.output, web.last.target) == (0, printed, target)


@pytest.mark.parametrize("group", TARGETS)
def test_inactive_topics_when_removed_then_is_asked_for(web: StubWeb, run_admin: RunAdmin, group: str) -> None:
    name, root = TARGETS[group]
    assert run_admin(group, "remove-inactive-topic-policies", name).exit_code == 0
    assert (web.last.method, web.last.target) == ("DELETE", f"{root}/inactiveTopicPolicies")


def test_commands_when_registered_then_each_has_its_three_forms() -> None:
    assert {command.name for command in POLICY_COMMANDS} == {
        f"{verb}-inactive-topic-policies" for verb in ("set", "get", "remove")
    }
