"""Conclusions of ``check``, and the samples that they rest on."""

import math

import pytest

from interpulse.cli.watching import findings
from interpulse.cli.watching.findings import METRICS, Finding, Level, Limits, Metrics, worst

DISK = "interpulse_data_directory"
STATES = 'interpulse_replication_topics{remote="west",state='


def metrics(*lines: str) -> Metrics:
    return Metrics.parse("\n".join(lines), METRICS)


def word(finding: Finding) -> tuple[str, str]:
    return finding.word, finding.sentence


@pytest.mark.parametrize(
    ("lines", "level", "words"),
    [
        ((), "untold", "does not report how much room"),
        ((f"{DISK}_free_bytes 50e9", f"{DISK}_size_bytes 100e9"), "ok", "50.0 GB of 100.0 GB are free"),
        ((f"{DISK}_free_bytes 9e9", f"{DISK}_size_bytes 100e9"), "warning", "less than 10%"),
        ((f"{DISK}_free_bytes 9e9", f"{DISK}_size_bytes 100e9", f"{DISK}_full 1"), "critical", "refused"),
        (
            (f"{DISK}_free_bytes 50e9", f"{DISK}_size_bytes 100e9", "interpulse_log_failed_groups_total 2"),
            "critical",
            "a write has failed",
        ),
    ],
)
def test_disk(lines: tuple[str, ...], level: str, words: str) -> None:
    found, sentence = word(findings.disk(metrics(*lines), Limits()))
    assert (found, words in sentence) == (level, True)


@pytest.mark.parametrize(("bound", "level"), [("0.01", "ok"), ("0.25", "warning")])
def test_event_loop(bound: str, level: str) -> None:
    name = "interpulse_event_loop_lag_seconds_bucket"
    lines = (f'{name}{{le="0.001"}} 10', f'{name}{{le="{bound}"}} 100', f'{name}{{le="+Inf"}} 100')
    assert word(findings.loop_lag(metrics(*lines), Limits()))[0] == level
    assert word(findings.loop_lag(metrics(), Limits()))[0] == "untold"


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        ("-1", "untold", "topics with a backlog quota"),
        ("30", "ok", "30 s old"),
        ("9000", "warning", "the oldest for 2 hours, in persistent://a/b/c"),
    ],
)
def test_backlog_age(seconds: str, level: str, words: str) -> None:
    line = f'pulsar_storage_backlog_age_seconds{{topic="persistent://a/b/c"}} {seconds}'
    found, sentence = word(findings.backlog_age(metrics(line), Limits()))
    assert (found, words in sentence) == (level, True)


@pytest.mark.parametrize(
    ("lines", "level", "words"),
    [
        ((), "ok", "nothing is replicated"),
        ((f'{STATES}"REPLICATING"}} 3', f'{STATES}"HELD"}} 0'), "ok", "3 topics are replicated"),
        ((f'{STATES}"REPLICATING"}} 3', f'{STATES}"HELD"}} 2'), "critical", "2 topics are HELD"),
        (('pulsar_replication_connected_count{topic="t"} 1',), "ok", "1 replicators are connected"),
        (('pulsar_replication_disconnected_count{topic="t"} 1',), "critical", "1 replicators are not connected"),
    ],
)
def test_replication(lines: tuple[str, ...], level: str, words: str) -> None:
    found, sentence = word(findings.replication(metrics(*lines)))
    assert (found, words in sentence) == (level, True)


@pytest.mark.parametrize(
    ("end", "level"), [(None, "ok"), (1000 + 86_400 * 30, "ok"), (1000 + 86_400, "warning"), (999, "critical")]
)
def test_token_or_certificate(end: float | None, level: str) -> None:
    assert findings.running_out("token", end, 1000, Limits()).word == level


def test_worst_when_several_then_is_the_exit_code() -> None:
    ok, critical = Finding("a", Level.OK, ""), Finding("b", Level.CRITICAL, "")
    assert worst([]) == worst([ok, findings.unreported("c", "it")]) == 0
    assert worst([ok, critical]) == 2
    assert critical.to_json() == {"name": "b", "level": "critical", "sentence": ""}


TEXT = """\
# TYPE a gauge
a{topic="x \\"y\\" \\\\ {z}",n="1"} 2.5 1700000000000
a{n="2"} 1
b 7
b{broken
c{le="+Inf"} +Inf
"""


def test_samples_when_read_then_are_those_of_the_names() -> None:
    found = Metrics.parse(TEXT, ["a", "b", "missing"])
    assert [(dict(sample.labels), sample.value) for sample in found.samples["a"]] == [
        ({"topic": 'x "y" \\ {z}', "n": "1"}, 2.5),
        ({"n": "2"}, 1.0),
    ]
    assert (found.total("a"), found.total("b"), found.total("missing")) == (3.5, 7.0, None)
    assert math.isinf(Metrics.parse(TEXT, ["c"]).total("c") or 0)


def test_quantile_when_in_a_histogram_then_is_the_bound_of_its_bucket() -> None:
    lines = [f'h_bucket{{le="{bound}"}} {count}' for bound, count in (("0.1", 50), ("0.5", 99), ("+Inf", 100))]
    found = Metrics.parse("\n".join(lines), ["h_bucket"])
    assert (found.quantile_bound("h", 0.5), found.quantile_bound("h", 0.99)) == (0.1, 0.5)
    assert found.quantile_bound("h", 1.0) == math.inf
    assert Metrics().quantile_bound("h", 0.5) is None
