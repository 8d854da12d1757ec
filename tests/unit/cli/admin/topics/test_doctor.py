"""``topics doctor``: where it looks, what it prints, how it ends. What it finds has its tests in ``rules``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/persistent/t/ns"
X = "persistent://t/ns/x"


def listed(web: StubWeb, *present: str, counts: dict[str, int] | None = None) -> None:
    """What the namespace t/ns lists, of persistent topics."""
    web.answer("GET", ROOT, [f"persistent://t/ns/{name}" for name in present])
    web.answer("GET", f"{ROOT}/partitioned", [f"persistent://t/ns/{name}" for name in counts or {}])
    for name in present:
        web.answer("GET", f"{ROOT}/{name}/internal-info", {"ledgers": [], "cursors": {}})
    for name, count in (counts or {}).items():
        web.answer("GET", f"{ROOT}/{name}/partitions", {"partitions": count, "deleted": False})
    for path in ("/admin/v2/non-persistent/t/ns", "/admin/v2/non-persistent/t/ns/partitioned"):
        web.answer("GET", path, [])


def test_namespace_when_healthy_then_ends_with_0(web: StubWeb, run_admin: RunAdmin) -> None:
    listed(web, "x-partition-0", "plain", counts={"x": 1})
    result = run_admin("topics", "doctor", "t/ns")
    assert (result.exit_code, result.stdout) == (0, "3 topics in 1 namespace examined, nothing found\n")


def test_finding_when_printed_then_lines_can_be_typed_as_they_are(web: StubWeb, run_admin: RunAdmin) -> None:
    listed(web, "it's-partition-1")
    web.answer(
        "GET",
        f"{ROOT}/it%27s-partition-1/internal-info",
        {"ledgers": [{"ledgerId": 1, "entries": 2, "size": 30}], "cursors": {"a": {}, "b": {}}},
    )
    result = run_admin("topics", "doctor", "t/ns")
    quoted = """'persistent://t/ns/it'"'"'s"""
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == [
        f"    repair: interpulse-admin topics create-partitioned-topic {quoted}' -p 2",
        f"    or delete: interpulse-admin topics delete {quoted}-partition-1'",
        f"        by --repair --delete {quoted}-partition-1'; then the other partitions stay",
        "        loses persistent://t/ns/it's-partition-1: at least 2 entries, 30 bytes; the topic cannot be "
        "loaded to count the rest; subscriptions a, b",
        "1 topic in 1 namespace examined, 1 disagreement found, 1 of them repaired by --repair",
    ]


def test_deletions_when_there_are_very_many_then_some_are_shown(web: StubWeb, run_admin: RunAdmin) -> None:
    listed(web, *(f"x-partition-{index}" for index in range(30)))
    lines = run_admin("topics", "doctor", "t/ns").stdout.splitlines()
    assert sum("or delete:" in line for line in lines) == 5
    assert lines[-2] == "    and 25 more that can be deleted; -o json lists them"
    assert sum("internal-info" in each.target for each in web.asked) == 5
    found = json.loads(run_admin("topics", "doctor", "t/ns", "-o", "json").stdout)
    assert len(found["findings"][0]["deletions"]) == 30


def test_every_namespace_when_none_is_named_then_is_looked_at_but_heartbeats(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/tenants", ["pulsar", "secret", "t"])
    web.answer("GET", "/admin/v2/namespaces/pulsar", ["pulsar/localhost:8080", "pulsar/system"])
    web.answer("GET", "/admin/v2/namespaces/secret", {"reason": "Not for you"}, status=403)
    web.answer("GET", "/admin/v2/namespaces/t", ["t/ns"])
    listed(web, "x-partition-0")
    for domain in ("persistent", "non-persistent"):
        for path in ("", "/partitioned"):
            web.answer("GET", f"/admin/v2/{domain}/pulsar/system{path}", [])
    result = run_admin("topics", "doctor")
    assert result.exit_code == 1
    assert result.stdout.endswith(
        "1 topic in 2 namespaces examined, 1 disagreement found, 1 of them repaired by --repair\n"
    )
    assert result.stderr == "Left out: tenant secret: Not for you (HTTP 403 Forbidden)\n"
    assert not [each.target for each in web.asked if "localhost" in each.target]


def test_one_namespace_of_many_when_it_cannot_be_read_then_the_others_are_and_it_ends_with_2(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", "/admin/v2/tenants", ["t"])
    web.answer("GET", "/admin/v2/namespaces/t", ["t/broken", "t/ns"])
    listed(web, "x")
    for path in ("persistent/t/broken", "persistent/t/broken/partitioned"):
        web.answer("GET", f"/admin/v2/{path}", {"reason": "No metadata"}, status=500)
    result = run_admin("topics", "doctor")
    assert (result.exit_code, result.stdout) == (2, "1 topic in 1 namespace examined, nothing found\n")
    assert result.stderr == "Could not look: t/broken: No metadata (HTTP 500 Internal Server Error)\n"


def test_tenants_when_they_may_not_be_listed_then_a_namespace_has_to_be_named(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", "/admin/v2/tenants", {"reason": "Superuser only"}, status=401)
    result = run_admin("topics", "doctor")
    assert result.exit_code == 2
    assert "Superuser only (HTTP 401 Unauthorized): name a namespace to look at" in result.stderr


def test_tenants_when_the_broker_fails_then_naming_a_namespace_is_not_advised(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", "/admin/v2/tenants", {"reason": "No metadata"}, status=500)
    result = run_admin("topics", "doctor")
    assert (result.exit_code, result.stderr) == (2, "Error: No metadata (HTTP 500 Internal Server Error)\n")


@pytest.mark.parametrize(
    ("arguments", "domains"),
    [
        (["t/ns"], {"persistent", "non-persistent"}),
        (["t/ns", "--domain", "persistent"], {"persistent"}),
        (["t/ns", "-td", "non_persistent"], {"non-persistent"}),
        ([X], {"persistent"}),
        (["x", "--topic-domain", "persistent"], {"persistent"}),
    ],
)
def test_domain_when_named_then_only_that_is_asked(
    web: StubWeb, run_admin: RunAdmin, arguments: list[str], domains: set[str]
) -> None:
    for namespace in ("t/ns", "public/default"):
        for domain in ("persistent", "non-persistent"):
            web.answer("GET", f"/admin/v2/{domain}/{namespace}", [f"{domain}://{namespace}/x"])
            web.answer("GET", f"/admin/v2/{domain}/{namespace}/partitioned", [])
    assert run_admin("topics", "doctor", *arguments).exit_code == 0
    assert {each.target.split("/")[3] for each in web.asked} == domains


def test_domain_when_the_topic_is_of_another_then_is_wrong_usage(web: StubWeb, run_admin: RunAdmin) -> None:
    result = run_admin("topics", "doctor", X, "--domain", "non-persistent")
    assert (result.exit_code, web.asked) == (2, [])
    assert f"{X} is not of the domain non-persistent" in result.stderr


def test_name_when_listed_and_no_name_then_is_told(web: StubWeb, run_admin: RunAdmin) -> None:
    listed(web, "-partition-3")
    result = run_admin("topics", "doctor", "t/ns")
    assert result.exit_code == 0
    assert result.stderr == "Left out: 'persistent://t/ns/-partition-3' is listed but is not the name of a topic\n"


def test_topic_when_the_cluster_cannot_tell_its_metadata_then_the_others_are_looked_at_and_it_ends_with_2(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", f"{ROOT}/x/partitions", {"reason": "x has damaged metadata"}, status=500)
    listed(web, "x-partition-0", "y-partition-0", "z-partition-0", counts={"x": 1, "z": 1})
    result = run_admin("topics", "doctor", "t/ns")
    assert result.exit_code == 2
    assert "lost-metadata: partition 0 of persistent://t/ns/y is stored" in result.stdout
    assert result.stdout.endswith("1 disagreement found, 1 of them repaired by --repair\n")
    assert result.stderr == (f"Could not look: {X}: x has damaged metadata (HTTP 500 Internal Server Error)\n")


@pytest.mark.parametrize(
    ("form", "start"),
    [("json", '{\n  "topicsExamined": 1'), ("yaml", "topicsExamined: 1\n"), ("table", "FIELD           VALUE\n")],
)
def test_form_when_chosen_then_all_is_in_it(web: StubWeb, run_admin: RunAdmin, form: str, start: str) -> None:
    listed(web, "x-partition-0")
    result = run_admin("topics", "doctor", "t/ns", "-o", form)
    assert (result.exit_code, result.stdout[: len(start)]) == (1, start)
    assert "lost-metadata" in result.stdout


def test_look_when_it_is_long_and_on_a_terminal_then_progress_is_shown_and_wiped(
    web: StubWeb, run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{index}" for index in range(3)]
    listed(web, *(f"{name}-partition-0" for name in names), counts=dict.fromkeys(names, 1))
    monkeypatch.setattr("interpulse.terminal.progress._on_terminal", lambda: True)
    monkeypatch.setattr("interpulse.terminal.progress._RENEWED_S", 0.0)
    texts = [f"t/ns: metadata of {done} of 3 partitioned topics read" for done in (1, 2, 3)]
    shown = run_admin("topics", "doctor", "t/ns").stderr
    assert shown == "".join(f"\r{text}" for text in texts) + f"\r{' ' * len(texts[-1])}\r"


def test_repair_when_made_then_calls_are_listed_and_the_rest_is_looked_at_again(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    before: list[Any] = [f"{X}-partition-0"]
    for answer in (before, before, []):
        web.answer("GET", ROOT, answer)
    web.answer("GET", f"{ROOT}/partitioned", [])
    result = run_admin("topics", "doctor", X, "--repair")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"done: interpulse-admin topics create-partitioned-topic {X} -p 1",
        "1 topic in 1 namespace examined, nothing is left",
    ]
    assert [(each.method, each.body) for each in web.asked if each.method != "GET"] == [("PUT", 1)]
