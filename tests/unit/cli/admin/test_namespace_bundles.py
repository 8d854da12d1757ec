"""``namespaces``: bundles, and the subscriptions of all topics at once."""

from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/namespaces/t/ns"
BUNDLE = "0x00000000_0x40000000"


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ("", "/unload"),
        ("-b 0x00000000_0x40000000", "/0x00000000_0x40000000/unload"),
        ("-b 0x0_0x4 -d b:8080", "/0x0_0x4/unload?destinationBroker=b%3A8080"),
    ],
)
def test_namespace_when_unloaded_then_whole_or_by_bundle(
    web: StubWeb, run_admin: RunAdmin, options: str, target: str
) -> None:
    result = run_admin("namespaces", "unload", "t/ns", *options.split())
    assert (result.exit_code, web.last.method) == (0, "PUT")
    assert web.last.target == f"/admin/v2/namespaces/t/ns{target}"


@pytest.mark.parametrize(("options", "words"), [("-b half", "is not a bundle"), ("-d b:1", "needs --bundle")])
def test_unload_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, options: str, words: str
) -> None:
    result = run_admin("namespaces", "unload", "t/ns", *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


def test_bundles_when_asked_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/bundles", {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1})
    printed = '{\n  "boundaries" : [ "0x00000000", "0xffffffff" ],\n  "numBundles" : 1\n}\n'
    assert run_admin("namespaces", "bundles", "t/ns").stdout == printed


@pytest.mark.parametrize(
    ("options", "target", "body"),
    [
        (f"-b {BUNDLE}", f"{BUNDLE}/split?unload=false", None),
        ("-bt LARGEST -u", "LARGEST/split?unload=true", None),
        (
            f"--bundle {BUNDLE} --unload --split-algorithm-name specified_positions_divide --split-boundaries 1,2",
            f"{BUNDLE}/split?unload=true&splitAlgorithmName=specified_positions_divide",
            [1, 2],
        ),
    ],
)
def test_bundle_when_split_then_is_asked_for(sent_by: SentBy, options: str, target: str, body: Any) -> None:
    assert sent_by("namespaces", "split-bundle", "t/ns", *options.split()) == ("PUT", f"{ROOT}/{target}", body)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "either --bundle or --bundle-type"),
        (f"-b {BUNDLE} -bt HOT", "either --bundle or --bundle-type"),
        ("-bt SMALLEST", "SMALLEST"),
        (f"-b {BUNDLE} -sb 1,x", "not a list of integers"),
    ],
)
def test_split_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, options: str, words: str
) -> None:
    result = run_admin("namespaces", "split-bundle", "t/ns", *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("clear-backlog t/ns --force", "clearBacklog"),
        ("clear-backlog t/ns -force -s a/b", "clearBacklog/a%2Fb"),
        (f"clear-backlog t/ns -force -b {BUNDLE}", f"{BUNDLE}/clearBacklog"),
        (f"clear-backlog t/ns -force -b {BUNDLE} --sub s", f"{BUNDLE}/clearBacklog/s"),
        ("unsubscribe t/ns -s a/b", "unsubscribe/a%2Fb"),
        (f"unsubscribe t/ns -s s -b {BUNDLE}", f"{BUNDLE}/unsubscribe/s"),
    ],
)
def test_subscriptions_of_all_topics_when_changed_then_is_asked_for(sent_by: SentBy, command: str, target: str) -> None:
    assert sent_by("namespaces", *command.split()) == ("POST", f"{ROOT}/{target}", None)


@pytest.mark.parametrize(("answer", "asked"), [("y\n", 1), ("n\n", 0)])
def test_backlog_when_not_forced_then_it_is_cleared_only_if_confirmed(web: StubWeb, answer: str, asked: int) -> None:
    arguments = ("namespaces", "clear-backlog", "t/ns")
    result = CliRunner().invoke(admin, arguments, input=answer, catch_exceptions=False)
    assert (result.exit_code, len(web.asked)) == (0, asked)
    assert "Are you sure you want to clear the backlog?" in result.output
