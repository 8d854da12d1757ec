"""Settings as a test writes them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.testing import ConfigError, IgnoredSettingWarning
from interpulse.testing.settings import broker_config

INSIDE_TLS = {"webServicePortTls": 0, "tlsCertificateFilePath": "/broker.pem", "tlsKeyFilePath": "/broker.key"}


@pytest.mark.parametrize(
    ("settings", "field", "value"),
    [
        ({"allowAutoTopicCreation": False}, "allow_auto_topic_creation", False),
        ({"allowAutoTopicCreation": "false"}, "allow_auto_topic_creation", False),
        ({"brokerDeduplicationEnabled": True}, "broker_deduplication_enabled", True),
        ({"defaultNumPartitions": 3}, "default_num_partitions", 3),
        ({"maxTopicsPerNamespace": 0}, "max_topics_per_namespace", 0),
        ({"backlogQuotaDefaultLimitBytes": -1}, "backlog_quota_default_limit_bytes", -1),
        ({"clusterName": "west"}, "cluster_name", "west"),
        ({"superUserRoles": ""}, "super_user_roles", ""),
        ({}, "web_service_port", 0),
        ({"webServicePort": "", **INSIDE_TLS}, "web_service_port", None),
        ({"webServicePort": 8081}, "web_service_port", 8081),
    ],
)
def test_settings_when_written_in_python_then_hold(settings: dict[str, Any], field: str, value: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(broker_config(settings, {"webServicePort": "0"}), field) == value


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"allowAutoTopicCreate": False}, "allowAutoTopicCreate is not a known setting; the nearest is allowAuto"),
        ({"allow_auto_topic_creation": 1}, "is not a known setting; the nearest is allowAutoTopicCreation"),
        ({"allowAutoTopicCreation": 0}, "allowAutoTopicCreation=0: must be true or false"),
        ({"defaultNumPartitions": True}, "defaultNumPartitions=true: must be an integer"),
        ({"defaultNumPartitions": 0}, "defaultNumPartitions=0: must be at least 1"),
        ({"defaultNumPartitions": 3.0}, "defaultNumPartitions=3.0: must be a bool, an int or a str, and is a float"),
        ({"superUserRoles": ["me"]}, r"superUserRoles=\['me'\]: must be a bool, an int or a str, and is a list"),
        ({"clusterName": None}, "clusterName=None: must be a bool, an int or a str, and is a NoneType"),
        ({"maxMessageSize": 1.5, "noSuchKey": 1}, "(?s)maxMessageSize=1.5.*noSuchKey is not a known setting"),
    ],
)
def test_settings_when_they_cannot_be_then_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        broker_config(settings, {})


def test_settings_when_a_key_of_pulsar_has_no_effect_then_the_caller_is_warned() -> None:
    with pytest.warns(IgnoredSettingWarning, match="maxConsumerMetadataSize is a setting of Pulsar") as told:
        assert broker_config({"maxConsumerMetadataSize": 1}, {}) == BrokerConfig()
    assert [each.filename for each in told] == [__file__]
