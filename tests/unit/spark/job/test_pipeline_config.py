"""The job's configuration file."""

import pytest

from interpulse.spark.job.pipeline_config import PipelineConfigError, load_pipeline_config, parse_pipeline_config

EAST = {"cluster": "east", "service_url": "pulsar://127.0.0.1:1", "admin_url": "http://127.0.0.1:2"}
WEST = {"cluster": "west", "service_url": "pulsar://127.0.0.1:3", "admin_url": "http://127.0.0.1:4"}
CERTIFICATE = {"certificate_file": "/c.pem", "key_file": "/k.pem"}
GOOD = {
    "pipeline": {"name": "p", "state": "/tmp/p"},
    "source": EAST,
    "target": WEST,
    "select": {"topics": ["x", "t/ns/y"]},
}


def test_small_file_is_enough():
    config = parse_pipeline_config(GOOD)
    assert config.select.topics == ("persistent://public/default/x", "persistent://t/ns/y")
    assert config.start.offsets == "subscription"
    assert config.provision.ensure_deduplication
    assert (config.provision.namespaces, config.provision.on_mismatch, config.forward) == (False, "hold", "none")


def test_policies_need_no_target():
    body = {key: value for key, value in GOOD.items() if key != "target"} | {"select": {"from_policies": True}}
    assert parse_pipeline_config(body).target is None


@pytest.mark.parametrize(("given", "sync"), [("marked", "marked"), ("all", "all"), (True, "all"), (False, "none")])
def test_subscriptions_to_carry_have_a_name_or_the_form_of_earlier_versions(given, sync):
    config = parse_pipeline_config(GOOD | {"subscriptions": {"sync": given}})
    assert config.subscriptions.sync == sync
    assert config.carries_subscriptions == (sync != "none")


def test_replicated_subscriptions_are_carried_unless_topics_are_merged():
    merged = {"map": {"rules": [{"from": "a/(.*)", "to": "b/c"}], "merge": True}}
    assert parse_pipeline_config(GOOD).carries_subscriptions
    assert not parse_pipeline_config(GOOD | merged).carries_subscriptions


def test_sizes_and_durations_may_have_units():
    limits = parse_pipeline_config(GOOD | {"limits": {"bytes_per_batch": "16m", "poll_ms": "1s"}}).limits
    assert (limits.bytes_per_batch, limits.poll_ms) == (16 << 20, 1000)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pipeline": {"name": "p"}}, "state is required"),
        ({"pipeline": {"name": "a b", "state": "/x"}}, "name is required"),
        (
            {"pipeline": {"name": "p", "state": "/x", "sart": "latest"}},
            "unknown key of .pipeline. 'sart'; did you mean start",
        ),
        ({"pipeline": {"name": "p", "state": "/x", "start": "now"}}, "not one of subscription, earliest, latest"),
        (
            {"pipeline": {"name": "p", "state": "/x", "start": {"x": "1:2:3"}}},
            r"\[pipeline\] start: x: '1:2:3' is inside",
        ),
        ({"pipeline": {"name": "p", "state": "/x", "start": {"a b/c": "1:2"}}}, r"\[pipeline\] start: Invalid topic"),
        ({"pipeline": {"name": "p", "state": "/x", "forward": "all"}}, "forward: 'all' is not one of none, origin"),
        ({"provision": {"on_mismatch": "shrink"}}, "on_mismatch: 'shrink' is not one of hold, fail, expand"),
        ({"sources": {}}, "unknown table 'sources'; did you mean source"),
        ({"source": {"cluster": "east"}}, "needs service_url, admin_url"),
        ({"source": WEST}, "same cluster west"),
        ({"target": {**WEST, "service_url": EAST["service_url"]}}, "share the broker address"),
        ({"target": {**WEST, **CERTIFICATE}}, r"\[target\] certificate_file needs encrypted addresses"),
        ({"source": {**EAST, "key_file": "/k.pem"}}, r"\[source\] certificate_file and key_file belong together"),
        (
            {"source": {**EAST, "token": "a", "auth_plugin": "AuthenticationBasic"}},
            r"\[source\] token excludes auth_plugin",
        ),
        ({"target": {**WEST, "auth_params": "a:b"}}, r"\[target\] auth_params needs auth_plugin"),
        ({"target": {**WEST, "auth_plugin": "AuthenticationOAuth2"}}, r"\[target\] auth_params: .* needs {"),
        ({"target": {**WEST, "auth_plugin": "AuthenticationTls"}}, r"\[target\] auth_params: .* an encrypted address"),
        ({"select": {}}, "needs from_policies = true, or namespaces, or topics"),
        ({"select": {"topics": "x"}}, "must be a list"),
        ({"select": {"namespaces": ["a b"]}}, r"\[select\] namespaces: Invalid namespace name: a b"),
        ({"map": {"rule": []}}, "unknown key of .map. 'rule'; did you mean rules"),
        ({"map": {"rules": [{"from": "(", "to": "a"}]}}, r"\[map\] from = '\(' is not a regular expression"),
        (
            {"select": {"from_policies": True}, "map": {"rules": [{"from": "a/(.*)", "to": "b/$1"}]}},
            "map. is not for from_policies = true",
        ),
        ({"limits": {"tasks": 0}}, "not a positive number"),
        (
            {"subscriptions": {"sync": True}, "map": {"rules": [{"from": "a/(.*)", "to": "b/c"}], "merge": True}},
            r"\[map\] merge = true needs \[subscriptions\] sync = ",
        ),
        ({"subscriptions": {"sync": "some"}}, r"\[subscriptions\] sync: 'some' is not one of marked, all, none"),
        ({"subscriptions": {"include": "("}}, r"\[subscriptions\] include: '\(' is not a regular expression"),
        ({"heartbeat": {"namespace": "a b"}}, r"\[heartbeat\] namespace: "),
        ({"heartbeat": {"interval_ms": 0}}, r"\[heartbeat\] interval_ms: 0 is not a positive number"),
        ({"provision": {"create": "yes"}}, "neither true nor false"),
        ({"pipeline": {"name": "p", "state": "/x", "as_replicator": "no"}}, "as_replicator: 'no' is neither true nor"),
        ({"pipeline": {"name": "p", "state": "/x", "lane_epoch": -1}}, "lane_epoch: -1 is not a positive number"),
        (
            {"source": {**EAST, "service_url": "127.0.0.1:6650"}},
            r"\[source\] service_url: '127.0.0.1:6650' does not look",
        ),
        (
            {"target": {**WEST, "service_url": "pulsar://a:b"}},
            r"\[target\] service_url: not a broker URL: 'pulsar://a:b'",
        ),
        ({"target": {**WEST, "admin_url": "http://a:b"}}, r"\[target\] admin_url: not a web service URL: 'http://a:b'"),
        ({"select": {"topics": ["x"], "exclude": "("}}, r"\[select\] exclude: '\(' is not a regular expression"),
    ],
)
def test_problems_are_named(change, problem):
    with pytest.raises(PipelineConfigError, match=problem):
        parse_pipeline_config({**GOOD, **change})


def test_one_mistake_is_one_problem():
    with pytest.raises(PipelineConfigError) as caught:
        parse_pipeline_config({**GOOD, "target": {**WEST, "admin_url": "west"}})
    assert ";" not in str(caught.value)


def test_all_problems_are_reported_together():
    with pytest.raises(PipelineConfigError) as caught:
        parse_pipeline_config({"nonsense": {}})
    for part in ("nonsense", "name is required", "state is required", "[source] is required", "[select] is required"):
        assert part in str(caught.value)


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PipelineConfigError, match=r"absent\.toml"):
        load_pipeline_config(str(tmp_path / "absent.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("[pipeline")
    with pytest.raises(PipelineConfigError, match=r"broken\.toml: not TOML"):
        load_pipeline_config(str(broken))
