"""The fixtures, in pytest runs of their own."""

from __future__ import annotations

import pytest

from interpulse.testing import InProcessBroker

pytest_plugins = "pytester"

pytestmark = pytest.mark.pulsar_settings(clusterName="east", maxTopicsPerNamespace=7)


@pytest.mark.pulsar_settings(clusterName="west", allowAutoTopicCreation=False, defaultNumPartitions=3)
def test_fixture_when_marked_with_settings_then_they_hold_and_the_nearest_one_wins(
    pulsar_broker: InProcessBroker,
) -> None:
    config = pulsar_broker.app.config
    assert config.cluster_name == "west"
    assert not config.allow_auto_topic_creation
    assert (config.default_num_partitions, config.max_topics_per_namespace) == (3, 7)


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run these tests in a process of its own, as a user's project would."""
    pytester.makepyfile("import pytest\n" + tests)
    return pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:schemathesis", "--strict-markers", *options)


def test_marker_when_settings_cannot_be_then_the_test_fails_with_the_sentence(pytester: pytest.Pytester) -> None:
    refused = {
        "allowAutoTopicCreate=False": "*allowAutoTopicCreate is not a known setting; the nearest is *",
        "defaultNumPartitions=2.5": "*defaultNumPartitions=2.5: must be a bool, an int or a str*",
        "{'clusterName': 'x'}": "*pulsar_settings takes keys=values, not {'clusterName': 'x'}*",
    }
    tests = (
        f"@pytest.mark.pulsar_settings({settings})\ndef test_{number}(pulsar_broker): pass"
        for number, settings in enumerate(refused)
    )
    result = run(pytester, "\n".join(tests))
    result.assert_outcomes(errors=len(refused))
    result.stdout.fnmatch_lines([*refused.values()])
    result.stdout.no_fnmatch_line("During handling of the above exception*")
    result.stdout.no_fnmatch_line("*Traceback*")


def test_marker_when_a_key_has_no_effect_here_then_the_summary_tells(pytester: pytest.Pytester) -> None:
    result = run(pytester, "@pytest.mark.pulsar_settings(maxConsumerMetadataSize=1)\ndef test_one(pulsar_broker): pass")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*IgnoredSettingWarning: maxConsumerMetadataSize is a setting of Pulsar*"])


def test_marker_when_the_fixture_does_not_take_it_then_the_test_fails(pytester: pytest.Pytester) -> None:
    fixtures = ("pulsar_broker_session", "pulsar_broker_factory")
    tests = (f"@pytest.mark.pulsar_settings(clusterName='x')\ndef test_{each}({each}): pass" for each in fixtures)
    result = run(pytester, "\n".join(tests))
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"the marker pulsar_settings has no effect on {each}: *" for each in fixtures])


def test_session_broker_when_used_by_two_tests_then_is_one_with_the_settings_of_the_session(
    pytester: pytest.Pytester,
) -> None:
    tests = """
@pytest.fixture(scope="session")
def pulsar_broker_session_settings():
    return {"clusterName": "shared"}

seen = []

@pytest.mark.parametrize("number", [1, 2])
def test_one(pulsar_broker_session, number):
    assert pulsar_broker_session.app.config.cluster_name == "shared"
    seen.append(pulsar_broker_session.service_url)
    assert len(set(seen)) == 1
"""
    run(pytester, tests).assert_outcomes(passed=2)


def test_factory_when_used_then_gives_running_brokers(pytester: pytest.Pytester) -> None:
    tests = """
def test_one(pulsar_broker_factory):
    east, west = pulsar_broker_factory(clusterName="east"), pulsar_broker_factory(clusterName="west")
    assert east.app.ready and west.app.ready and east.web_url != west.web_url
"""
    run(pytester, tests).assert_outcomes(passed=1)


def test_plugin_when_the_broker_extra_is_missing_then_one_sentence_and_other_tests_run(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("import sys; sys.modules['re2'] = None")
    result = run(pytester, "def test_one(pulsar_broker): pass\n\ndef test_two(): pass")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.no_fnmatch_line("*No module named*")
    result.stdout.fnmatch_lines(["a broker needs google-re2 as well: pip install 'interpulse[[]broker[]]', or *"])


def test_plugin_when_switched_off_then_pytest_runs(pytester: pytest.Pytester) -> None:
    run(pytester, "def test_one(): pass", "-p", "no:interpulse").assert_outcomes(passed=1)


def test_plugin_when_no_fixture_is_used_then_nothing_of_the_broker_is_loaded(pytester: pytest.Pytester) -> None:
    tests = """
def test_one():
    import sys
    rooms = {name.split(".")[1] for name in sys.modules if name.startswith("interpulse.")}
    assert rooms == {"testing"}
    assert not {"aiohttp", "google.protobuf", "pyspark"} & set(sys.modules)
"""
    run(pytester, tests).assert_outcomes(passed=1)
