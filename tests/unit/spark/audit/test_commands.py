"""`interpulse audit`: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.spark.audit import commands as command
from interpulse.spark.audit import plans
from interpulse.spark.audit.launch import AuditOptions, summary


class Ended(Exception):
    """Instead of the end of the process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@pytest.fixture(autouse=True)
def _no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(command, "end_process", end)
    monkeypatch.setattr("interpulse.spark.program.end_process", end)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and all that was printed."""
    result = CliRunner().invoke(main, ["audit", *arguments])
    code = result.exception.code if isinstance(result.exception, Ended) else result.exit_code
    return code, result.output


def summary_of(*counts: tuple[str, str, int], unread: int = 0, new: Any = None) -> dict[str, Any]:
    rows = [{"namespace": "a/b", "kind": kind, "severity": level, "count": count} for kind, level, count in counts]
    covered = {"namespaces": 1, "topics": 5, "unread": 0, "sampled": 0, "sample_wrong": 0}
    sides = {"east": covered, "west": {**covered, "unread": unread}}
    return summary("r", "east", "west", rows, sides, new)


def item(kind: str) -> dict[str, Any]:
    request = json.dumps({"method": "PUT", "path": "/admin/v2/x", "body": 4})
    return {"kind": kind, "namespace": "a/b", "topic": None, "request": request}


class FakeAudit:
    """Gives the answers of one run."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.options: AuditOptions | None = None

    def take_inventories(self, options: AuditOptions) -> None:
        self.options = options

    def compare(self, options: AuditOptions, against: str | None = None) -> dict[str, Any]:
        self.options = options
        return self.summary


def install(monkeypatch: pytest.MonkeyPatch, audit: FakeAudit) -> None:
    @contextmanager
    def opened(*_: Any) -> Iterator[FakeAudit]:
        yield audit

    monkeypatch.setattr(command, "_opened", opened)


COMPARE = ("compare", "--config", "f", "--dir", "d", "--run", "r")


@pytest.mark.parametrize(
    ("summary", "code", "told"),
    [
        (summary_of(), 0, "east -> west, run r: nothing differs"),
        (summary_of(("REMOTE_ONLY_TOPIC", "INFO", 3)), 0, "REMOTE_ONLY_TOPIC"),
        (summary_of(("TOPIC_MISSING", "ERROR", 3), ("RETENTION", "WARNING", 1)), 1, "4 differences"),
        (summary_of(("TOPIC_MISSING", "ERROR", 3), unread=2), 2, "not everything could be read"),
        (summary_of(("TOPIC_MISSING", "ERROR", 1), new=[{"kind": "TOPIC_MISSING"}]), 1, "1 of them are new:"),
    ],
    ids=["same", "only told", "different", "incomplete", "new"],
)
def test_compare_when_done_then_shows_counts_and_ends_by_them(
    summary: dict[str, Any], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, FakeAudit(summary))
    ended, output = run(*COMPARE)
    assert (ended, told in output) == (code, True), output
    assert "all differences: interpulse audit show --dir d --run r" in output


def test_options_when_given_then_reach_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = FakeAudit(summary_of())
    install(monkeypatch, audit)
    assert (
        run(
            *COMPARE,
            "--namespaces",
            "a/b, c/d",
            "--exact",
            "all",
            "--schemas",
            "--subscriptions",
            "--rate",
            "7",
            "--no-confirm",
        )[0]
        == 0
    )
    assert audit.options is not None
    assert (audit.options.namespaces, audit.options.confirm) == (("a/b", "c/d"), False)
    rules = audit.options.rules
    assert (rules.exact, rules.schemas, rules.subscriptions, rules.rate) == ("all", True, True, 7.0)
    assert rules.shared(2).rate == 3.5
    assert run("inventory", *COMPARE[1:]) == (0, "d/r\n")


def test_plan_when_made_then_is_a_file_and_names_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = {"severity": "ERROR", "kind": "TOPIC_TYPE_MISMATCH", "topic": "t", "namespace": "a/b", "remedy": "choose"}
    told = {**left, "severity": "INFO", "kind": "REMOTE_ONLY_TOPIC"}
    made = {"target": "west", "items": [item("TOPIC_MISSING")], "excluded": [left, told]}
    monkeypatch.setattr(plans, "plan_of_run", lambda *_: made)
    monkeypatch.setattr("interpulse.spark.job.pipeline_config.load_pipeline_config", lambda _: None)
    path = tmp_path / "plan.json"
    code, output = run("plan", "--config", "f", "--dir", "d", "--run", "r", "--plan", str(path))
    assert code == 0
    assert json.loads(path.read_text()) == made
    assert "1 items for west" in output
    assert "PUT /admin/v2/x" in output
    assert "TOPIC_TYPE_MISMATCH t: choose" in output
    assert "REMOTE_ONLY_TOPIC" not in output
    assert run("plan", "--config", "f", "--dir", "d")[0] == 2


def difference(kind: str, **more: Any) -> dict[str, Any]:
    keys = ("namespace", "topic", "field", "source_value", "target_value", "source_origin", "target_origin", "request")
    return dict.fromkeys(keys) | {"severity": "ERROR", "kind": kind, "namespace": "a/b", "remedy": "choose"} | more


def test_show_when_a_run_has_differences_then_is_a_table_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}

    def read(directory: Path, **chosen: Any) -> Any:
        asked.update(chosen, directory=directory)
        yield difference("RETENTION", source_value="null", source_origin="broker", target_value="5")
        yield difference("TOPIC_MISSING", topic="persistent://a/b/t", source_value='{"partitions": 4}')

    monkeypatch.setattr(plans, "read_findings", read)
    shown = ("show", "--dir", "d", "--run", "r")
    code, output = run(*shown, "--kinds", "RETENTION,TOPIC_MISSING", "--namespaces", "a/b")
    assert code == 0
    assert [line.split() for line in output.splitlines()] == [
        ["SEVERITY", "KIND", "SUBJECT", "SOURCE", "TARGET", "REMEDY"],
        ["ERROR", "RETENTION", "a/b", "-", "(broker)", "5", "choose"],
        ["ERROR", "TOPIC_MISSING", "persistent://a/b/t", '{"partitions":', "4}", "-", "choose"],
    ]
    assert asked == {"directory": Path("d/r"), "namespaces": ("a/b",), "kinds": ("RETENTION", "TOPIC_MISSING")}
    assert json.loads(run(*shown, "-o", "json")[1])[1]["source_value"] == {"partitions": 4}
    assert run(*shown, "--to", str(tmp_path / "x.csv")) == (0, "")
    assert "persistent://a/b/t" in (tmp_path / "x.csv").read_text()
    assert run(*shown, "--to", "x.xls")[0] == run(*shown, "--kinds", "SIZE")[0] == 2


@pytest.mark.parametrize(("status", "code"), [("DONE", 0), ("SKIPPED", 1), ("FAILED", 1)])
def test_apply_when_done_then_ends_by_what_is_left(
    status: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def applied(*_: Any, **__: Any) -> Any:
        yield item("RETENTION"), status, "because"

    monkeypatch.setattr(plans, "apply_plan", applied)
    monkeypatch.setattr(plans, "load_plan", lambda *_: {"items": [item("RETENTION")]})
    monkeypatch.setattr("interpulse.spark.job.pipeline_config.load_pipeline_config", lambda _: None)
    ended, output = run("apply", "--config", "f", "--plan", str(tmp_path / "plan.json"))
    assert ended == code
    assert f"1 {status.lower()}" in output


def test_commands_when_the_configuration_is_absent_then_end_with_2(tmp_path: Path) -> None:
    code, output = run("apply", "--config", "/absent.toml", "--plan", "p")
    assert (code, "/absent.toml: No such file or directory" in output) == (2, True)
    code, output = run("compare", "--config", "/absent.toml", "--dir", str(tmp_path))
    assert (code, "/absent.toml: No such file or directory" in output) == (2, True)
