"""The table of front ends side by side: our broker and a real Pulsar, asked by the same players in the same states."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.front_ends.brokers import SETTINGS, beyond, our_broker
from tests.front_ends.names import NAMES, PATHS, REFUSALS, Name, refusals_of_name, statuses_of_path
from tests.front_ends.players import Players, word_for_status
from tests.front_ends.records import LIVING, REAL_EMPTY_TOPIC, first_topic, found, prepared, stored_below
from tests.front_ends.rows import FAST_FRONT_ENDS, NOT_FOUND, Case, refused
from tests.front_ends.table import ROWS
from tests.interop.conftest import CHECKS, RealPulsarFactory
from tests.interop.real_pulsar import Address, run_java
from tests.support.official_client import connected

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OF_REAL = SETTINGS | {
    "brokerDeleteInactiveTopicsEnabled": "false",  # what is left of a row has to be there when all have been asked
    "topicLevelPoliciesEnabled": "false",  # else each topic it loads reads the policies of all
}
CASES = [case for row in ROWS for case in row.cases()]
JAVA_NOT_FOUND = ("TopicDoesNotExistException", "NotFoundException")
ROOTS = ("/managed-ledgers", "/admin/partitioned-topics")
TABLE_SECONDS_MAX = 500
WARM_UP_SECONDS_MAX = 180


def ask_all(service_url: str, web_url: str) -> dict[str, str]:
    """The answers of one broker, by case."""
    with Players(service_url, web_url) as players:
        answers = {case.id: players.ask(case) for case in CASES if case.front_end in FAST_FRONT_ENDS}
    by_java = [case for case in CASES if case.front_end not in FAST_FRONT_ENDS]
    return answers | ask_java(service_url, web_url, by_java)


def warm_up(service_url: str) -> None:
    """A real broker loads all topics of a namespace when it meets the first one, which takes longer than any answer."""
    deadline = time.monotonic() + WARM_UP_SECONDS_MAX
    with connected(service_url) as client:
        for namespace in LIVING:
            while True:
                try:
                    client.create_producer(str(first_topic(namespace))).close()
                    break
                except pulsar.Timeout:
                    assert time.monotonic() < deadline, f"topics of {namespace} are still not loaded"


def ask_java(service_url: str, web_url: str, cases: Sequence[Case]) -> dict[str, str]:
    """One JVM plays all of its cases."""
    lines = "".join(f"{case.front_end}\t{case.question}\t{case.topic}\n" for case in cases).encode()
    printed = run_java(CHECKS / "FrontEnds.java", service_url, web_url, stdin=lines, timeout_s=TABLE_SECONDS_MAX)
    said = [line for line in printed.decode().splitlines() if line[:2] in ("= ", "! ")]
    return {case.id: java_word(case, line) for case, line in zip(cases, said, strict=True)}


def java_word(case: Case, line: str) -> str:
    """The word of `rows` for what the Java clients said."""
    name, _, message = line[2:].partition("\t")
    if case.question.startswith("list"):
        return case.short(line[2:].split())
    if line.startswith("="):
        return name
    if name.isdigit():
        return word_for_status(case.question, int(name), message)
    if name in JAVA_NOT_FOUND:
        return NOT_FOUND
    return refused(message) if name == "NotAllowedException" else name


def differing(
    answers: Mapping[str, str], expected: Mapping[str, str], records: Mapping[str, set[str]], left: Mapping[str, str]
) -> Iterable[str]:
    """A line for every case that is not as it should be."""
    for case in CASES:
        if answers[case.id] != expected[case.id]:
            yield f"{case.id}: answered {answers[case.id]!r}, not {expected[case.id]!r}"
        if records[case.id] != set(left[case.id].split()):
            yield f"{case.id}: left {sorted(records[case.id])}, not {sorted(left[case.id].split())}"


def test_java_clients_on_our_broker(tmp_path: Path) -> None:
    by_java = [case for case in CASES if case.front_end not in FAST_FRONT_ENDS]
    with beyond(tmp_path / "beyond", by_java) as other, our_broker(tmp_path / "ours", by_java, other) as broker:
        answers = ask_java(broker.service_url, broker.web_url, by_java)
        stored: dict[Any, Any] = {}

        def stored_in(root: str) -> dict[Any, Any]:
            return broker.call(lambda app: stored_below(app.registry.metadata, root))

        for root in ROOTS:
            stored |= stored_in(root)
    records = found(stored, by_java)
    wrong = [
        f"{case.id}: answered {answers[case.id]!r}, not {case.expected!r}; left {sorted(records[case.id])}"
        for case in by_java
        if answers[case.id] != case.expected or records[case.id] != set(case.left.split())
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(1500)
def test_real_pulsar_answers_as_the_table_says(start_real_pulsar: RealPulsarFactory, tmp_path: Path) -> None:
    real = start_real_pulsar("standalone", settings=OF_REAL)
    real.kill()
    with beyond(tmp_path / "beyond", CASES) as other:
        addresses = other.service_url, other.web_url
        real.put_all_metadata(prepared(CASES, "standalone", REAL_EMPTY_TOPIC, addresses))
        real.start()
        warm_up(real.service_url)
        answers = ask_all(*real.address)
        real.kill()
    stored: dict[Any, Any] = {}
    for root in ROOTS:
        stored |= real.metadata_below(root)
    expected = {case.id: case.expected_of_real for case in CASES}
    left = {case.id: case.left_by_real for case in CASES}
    wrong = list(differing(answers, expected, found(stored, CASES), left))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.of_real], ids=lambda name: name.id)
def test_name_that_is_none_on_real_pulsar(real_pulsar: Address, name: Name) -> None:
    assert list(refusals_of_name(real_pulsar.service_url, name.text)) == REFUSALS


@pytest.mark.parametrize("path", [path for path in PATHS if not path.of_real], ids=lambda path: path.id)
def test_path_that_names_no_topic_on_real_pulsar(real_pulsar: Address, path: Name) -> None:
    assert statuses_of_path(real_pulsar.web_url, path.text) == [412] * 3
