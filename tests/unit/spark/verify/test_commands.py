"""`interpulse verify`: what it refuses, what it prints, and its exit codes."""

from __future__ import annotations

import json
import signal
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.client.credentials import Credentials
from interpulse.spark.options.connection_options import Access
from interpulse.spark.verify import commands as verify
from interpulse.spark.verify import verification
from interpulse.spark.verify.comparisons import TopicPair, VerifyError

TOPIC = "persistent://public/default/t"
URLS = ["--source-url", "pulsar://a", "--target-url", "pulsar://b", "--topics", "t"]
NAMED = [*URLS, "--source-cluster", "east", "--target-cluster", "west"]
ZERO = dict.fromkeys(("missing", "extra", "duplicated", "reordered", "different"), 0)


class Ended(Exception):
    """Instead of the end of the process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@pytest.fixture(autouse=True)
def _no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(verify, "end_process", end)
    monkeypatch.setattr("interpulse.spark.session.check_spark_installed", lambda: None)
    monkeypatch.setattr("interpulse.spark.program.end_process", end)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and all that was printed."""
    result = CliRunner().invoke(main, ["verify", *arguments])
    code = result.exception.code if isinstance(result.exception, Ended) else result.exit_code
    return code, result.output


def report_of(**problems: int) -> Any:
    topic = {"originals": 10, "copies": 10, "skipped": 2, "older": 0, "newer": 0, **ZERO, **problems}
    example = {"problem": "missing", "topic": TOPIC, "key": None, "source_place": "1:2", "target_place": None}
    body = {
        "result": "different" if problems else "same",
        "source": "east",
        "target": "west",
        "match": "position",
        "topics": {TOPIC: topic},
        "examples": [example] if problems else [],
    }
    return SimpleNamespace(is_same=not problems, to_json=lambda: body)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--source-url, --target-url, --topics, --source-cluster, --target-cluster needed, or --config"),
        (URLS, "--source-cluster, --target-cluster needed"),
        (["--config", "f", "--source-url", "pulsar://a"], "so --source-url would do nothing"),
        (["--config", "f", "--source-option", "tlsKeyFile=k"], "so --source-option would do nothing"),
        ([*NAMED, "--target-option", "tlsKeyFile"], "--target-option: expected KEY=VALUE, found 'tlsKeyFile'"),
        ([*NAMED, "--target-option", "tlsKeyFiles=k"], "--target-option: unknown option 'tlsKeyFiles'; did you mean"),
        (
            [*NAMED, "--source-token", "t", "--source-option", "authToken=u"],
            "authToken is repeated",
        ),
        ([*NAMED, "--source-option", "pulsar.client.authPluginClassName=X"], "plug-in X is not supported, only"),
        ([*NAMED, "--target-topics", "u,v"], "--topics has 1 names and --target-topics 2"),
        ([*URLS, "--match", "content", "--last", "1h"], "--last needs --match position"),
        ([*NAMED, "--last", "soon"], "'soon' is not a duration"),
        (["--config", "/absent.toml"], "/absent.toml: No such file or directory"),
        (["--source-url", "http//a", *NAMED[2:]], "http//a"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_command_when_it_cannot_be_run_then_says_why(arguments: list[str], told: str) -> None:
    code, output = run(*arguments)
    assert (code, told in output) == (2, True), output


def test_command_when_both_sides_are_the_same_then_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "compare", lambda *_, **__: iter([report_of()]))
    code, output = run(*NAMED)
    assert code == 0
    assert "east -> west: equal: all 10 entries exist once, in order and unchanged" in output
    assert "2 entries on the source are not to be copied" in output


def test_command_when_told_to_end_then_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "compare", lambda *_, **__: iter([signal.raise_signal(signal.SIGTERM)]))  # type: ignore[func-returns-value]
    code, output = run(*NAMED)
    assert (code, "stopped before the end; with --dir the same command goes on" in output) == (2, True), output


def test_topics_when_given_with_blanks_then_are_named_without(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def compare(comparisons: Any, **_: Any) -> Any:
        compared.extend(comparisons)
        return iter([report_of()])

    monkeypatch.setattr(verification, "compare", compare)
    names = ["--topics", "a, b ,", "--target-topics", " c,\td"]
    code, output = run(*NAMED, *names)
    assert code == 0, output
    prefix = "persistent://public/default/"
    assert compared[0].topics == (TopicPair(f"{prefix}a", f"{prefix}c"), TopicPair(f"{prefix}b", f"{prefix}d"))


def test_clusters_when_they_ask_for_an_identity_then_options_of_the_data_source_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Any] = []

    def compare(comparisons: Any, **_: Any) -> Any:
        compared.extend(comparisons)
        return iter([report_of()])

    monkeypatch.setattr(verification, "compare", compare)
    plugin = ["--source-option", "pulsar.client.authPluginClassName=AuthenticationBasic"]
    plugin += ["--source-option", "pulsar.client.authParams=file:///etc/user=word"]
    shown = ["--target-option", "tlsCertificateFile=c.pem", "--target-option", "tlsKeyFile=k.pem"]
    code, output = run(*NAMED, *plugin, *shown, "--target-option", "listenerName=outside")
    assert code == 0, output
    source, target = compared[0].source.access, compared[0].target.access
    assert source == Access("file:///etc/user=word", plugin="AuthenticationBasic")
    assert target == Access(certificate_file="c.pem", key_file="k.pem", listener_name="outside")
    assert target.credentials == Credentials("tls", "")


def test_command_when_something_differs_then_shows_it_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "compare", lambda *_, **__: iter([report_of(missing=3, extra=1)]))
    code, output = run(*NAMED)
    assert code == 1
    assert "different: 3 missing, 1 extra, of 10 entries" in output
    assert [line.split() for line in output.splitlines() if line.startswith(f"{TOPIC} ")] == [
        [TOPIC, "10", "10", "3", "1", "0", "0", "0"]
    ]
    code, output = run(*NAMED, "-o", "json")
    assert json.loads(output[output.index("[") :])[0]["topics"][TOPIC]["missing"] == 3


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (VerifyError("t: not found on east"), "interpulse verify: t: not found on east"),
        (KeyboardInterrupt(), "stopped before the end"),
        (RuntimeError("Traceback\n  of Spark\ninterpulse.model.errors.TopicNotFound: t is away\n"), "t is away"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_command_when_it_could_not_look_then_ends_with_2(
    failure: BaseException, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise failure

    monkeypatch.setattr(verification, "compare", fail)
    code, output = run(*NAMED)
    assert (code, told in output) == (2, True), output
