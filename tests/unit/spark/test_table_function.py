"""Arguments of ``read_pulsar`` as options; what Spark makes of its calls is in tests/spark."""

import pytest
from pyspark.sql.types import MapType, StringType
from pyspark.sql.udtf import AnalyzeArgument

from interpulse.spark.options.option import OptionError
from interpulse.spark.table_function import ReadPulsar, options_of_arguments

URL = "pulsar://localhost:6650"
GRANT = '{"issuerUrl": "https://issuer", "privateKey": "file:///key"}'


def argument(value, *, constant=True):
    kind = MapType(StringType(), StringType()) if isinstance(value, dict) else StringType()
    return AnalyzeArgument(dataType=kind, value=value, isTable=False, isConstantExpression=constant)


@pytest.mark.parametrize(
    ("given", "named", "options"),
    [
        pytest.param([URL], {"topic": "t"}, {"service.url": URL, "topic": "t"}, id="url and names"),
        pytest.param([{"service.url": URL}, {"topic": "t"}], {}, {"service.url": URL, "topic": "t"}, id="maps"),
        pytest.param([URL, {"topic": "t"}], {}, {"service.url": URL, "topic": "t"}, id="url and map"),
        pytest.param([URL], {"includeHeaders": True, "pollTimeoutMs": 5}, None, id="values that are no text"),
        pytest.param([URL], {"authToken": "file:///token"}, None, id="a token that is elsewhere"),
        pytest.param(
            [URL],
            {"pulsar.client.authParams": GRANT},
            {"service.url": URL, "pulsar.client.authParams": GRANT},
            id="a key that is elsewhere",
        ),
    ],
)
def test_arguments_when_constant_then_are_options(given, named, options):
    found = options_of_arguments(tuple(map(argument, given)), {name: argument(each) for name, each in named.items()})
    assert found == (options or {"service.url": URL} | {name: str(each).lower() for name, each in named.items()})


@pytest.mark.parametrize(
    ("given", "named", "reason"),
    [
        pytest.param([argument(URL), argument("t")], {}, "options by name", id="second argument"),
        pytest.param([argument(URL)], {"topic": argument(None)}, "topic is NULL", id="null"),
        pytest.param([argument(None, constant=False)], {}, "service.url .* not a constant", id="no constant"),
        pytest.param([argument({"topic": "t"})], {"TOPIC": argument("u")}, "TOPIC is given twice", id="twice"),
        pytest.param([argument(URL)], {"authToken": argument("abc")}, "authTokenFile", id="token"),
        pytest.param(
            [argument({"pulsar.client.authParams": "token:abc"})], {}, "authTokenFile", id="token in parameters"
        ),
        pytest.param(
            [argument({"pulsar.client.authParams": GRANT.replace("file:///key", "data:,abc")})],
            {},
            "authTokenFile",
            id="key in parameters",
        ),
        pytest.param(
            [argument({"pulsar.client.authParams": '{"userId":"jo","password":"abc"}'})],
            {},
            "authTokenFile",
            id="password in parameters",
        ),
    ],
)
def test_arguments_when_they_cannot_be_used_then_are_refused_with_the_reason(given, named, reason):
    with pytest.raises(OptionError, match=reason) as refusal:
        options_of_arguments(tuple(given), named)
    assert "abc" not in str(refusal.value)


@pytest.mark.parametrize("name", ["minPartitions", "maxPartitions", "maxEntriesPerPartition"])
def test_call_that_asks_for_more_tasks_is_refused(name):
    with pytest.raises(OptionError, match=f"one task.*{name}.*VIEW"):
        ReadPulsar.analyze(argument(URL), topic=argument("t"), **{name: argument(4)})


def test_call_that_asks_for_filters_is_refused():
    with pytest.raises(OptionError, match=r"filterPushdown.*VIEW"):
        ReadPulsar.analyze(argument(URL), topic=argument("t"), filterPushdown=argument(value=True))
