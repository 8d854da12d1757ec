"""Fields of bodies: each has its type, null means "not set"."""

from typing import Any

import pytest

from interpulse.broker.rest.fields import checked_fields
from interpulse.model.errors import InvalidRequest


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"adminRoles": ["a"], "serviceUrl": "http://x", "brokerClientTlsEnabled": False},
        {"retentionTimeInMinutes": -1, "retentionSizeInMB": 2**31 - 1},
        {"properties": {"a": "b"}, "schema": "", "type": "STRING"},
        {"bundles": {"numBundles": 4, "boundaries": ["0x00000000"]}},
        {"somethingElse": [1, {"a": None}]},
    ],
)
def test_body_when_every_field_fits_then_is_as_it_was(body: dict[str, Any]) -> None:
    assert checked_fields(body) == body


def test_body_when_fields_are_null_then_are_left_out_also_inside() -> None:
    body = {"adminRoles": None, "retention_policies": {"retentionTimeInMinutes": None}, "other": None}
    assert checked_fields(body) == {"retention_policies": {}, "other": None}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"adminRoles": "a"}, 'adminRoles must be an array of texts, not "a"'),
        ({"adminRoles": [1]}, "adminRoles must be an array of texts"),
        ({"serviceUrl": 1}, "serviceUrl must be a text, not 1"),
        ({"brokerClientTlsEnabled": "true"}, "must be true or false"),
        ({"retentionTimeInMinutes": True}, "must be a whole number"),
        ({"retentionTimeInMinutes": 2**31}, "must be a whole number"),
        ({"properties": {"a": 1}}, "properties must be an object of texts"),
        ({"bundles": 4}, "bundles must be an object"),
        ({"bundles": {"numBundles": "4"}}, "numBundles must be a whole number"),
        ({"autoTopicCreationOverride": {"topicType": 1}}, "topicType must be a text"),
    ],
)
def test_body_when_a_field_does_not_fit_then_is_refused_by_name(body: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        checked_fields(body)
