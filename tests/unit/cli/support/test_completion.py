"""Names of a cluster that a shell completes."""

import pytest
from click.shell_completion import ShellComplete

from interpulse.cli.admin.admin import admin
from tests.support.stub_web import Answer, Asked, StubWeb

ANSWERS = {
    "/admin/v2/tenants": b'["public", "prod"]',
    "/admin/v2/namespaces/public": b'["public/default", "public/other"]',
    "/admin/v2/namespaces/prod": b'["prod/a"]',
    "/admin/v2/persistent/public/default": b'["persistent://public/default/t", "persistent://public/default/p-partition-0"]',
    "/admin/v2/non-persistent/public/default": b'["non-persistent://public/default/n"]',
    "/admin/v2/persistent/prod/a": b'["persistent://prod/a/x"]',
}


def answer(asked: Asked) -> Answer:
    body = ANSWERS.get(asked.target.partition("?")[0], b"[]")
    return Answer(200, body, {"Content-Type": "application/json"})


def complete(words: str, incomplete: str, url: str) -> list[str]:
    completer = ShellComplete(admin, {}, "interpulse-admin", "_X")
    arguments = ["--admin-url", url, *words.split()]
    return [item.value for item in completer.get_completions(arguments, incomplete)]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ("tenants get", "p", ["prod", "public"]),
        ("tenants get", "pu", ["public"]),
        ("topics list", "pub", ["public/default", "public/other"]),
        ("topics list", "prod/", ["prod/a"]),
        ("topics stats", "prod/a/", ["prod/a/x"]),
        ("topics stats", "public/d", ["public/default/n", "public/default/p", "public/default/t"]),
        ("topics stats", "persistent://public/d", ["persistent://public/default/p", "persistent://public/default/t"]),
        ("topics stats", "t", ["t"]),
    ],
)
def test_names_when_they_begin_so_then_are_completed(words: str, incomplete: str, expected: list[str]) -> None:
    with StubWeb(otherwise=answer) as web:
        assert complete(words, incomplete, web.url) == expected


def test_names_of_an_unreachable_cluster_are_none_without_a_word(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert complete("topics list", "", "http://127.0.0.1:1") == []
    assert complete("topics list", "", "nonsense") == []
    assert capfd.readouterr() == ("", "")


def test_names_when_the_answer_is_none_then_there_are_none() -> None:
    with StubWeb(otherwise=lambda asked: Answer(403, b"{}", {})) as web:
        assert complete("tenants get", "", web.url) == []
