"""The columns of a query, from the topics' schemas and from the user's."""

import json

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.options.option import OptionError, Purpose
from interpulse.spark.reading.read_columns import columns_of_query, schema_of_query
from interpulse.spark.reading.read_options import parse_read_options

FIELDS = [{"name": "name", "type": "string"}, {"name": "age", "type": "long"}]
PERSON = SchemaInfo(SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": FIELDS}).encode())
TEXT = SchemaInfo(SchemaType.STRING)


def options(**more):
    return parse_read_options({"service.url": "pulsar://x:1", "topics": "a,b", **more}, Purpose.BATCH_READ)


def fields(**types):
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_columns_are_those_of_the_schema():
    wanted = schema_of_query(options(includeColumns="none"), {"a": PERSON, "b": PERSON})
    assert wanted == fields(name=StringType(), age=LongType())
    assert columns_of_query(options(), wanted, {"a": PERSON}).topic_schema == PERSON


def test_schema_of_the_user_takes_some_of_the_columns():
    columns = columns_of_query(options(), fields(age=LongType(), __key=BinaryType()), {"a": PERSON})
    assert columns.wanted.names == ["age", "__key"]
    with pytest.raises(OptionError, match="column age is read as BIGINT, not STRING"):
        columns_of_query(options(), fields(age=StringType()), {"a": PERSON})
    with pytest.raises(OptionError, match="no column size in message mode; there are name, age"):
        columns_of_query(options(), fields(size=LongType()), {"a": PERSON})


@pytest.mark.parametrize("schemas", [{"a": PERSON}, {"a": PERSON, "b": TEXT}, {"a": TEXT}])
def test_user_who_asks_for_bytes_gets_them_whatever_the_schemas(schemas):
    for wanted in (fields(value=BinaryType(), __key=BinaryType()), fields(__key=BinaryType())):
        assert columns_of_query(options(), wanted, schemas).topic_schema is None


def test_corrupt_records_have_a_column_of_their_own():
    permissive = options(parseMode="PERMISSIVE", includeColumns="none")
    wanted = schema_of_query(permissive, {"a": PERSON})
    assert wanted.names == ["name", "age", "_corrupt_record"]
    assert columns_of_query(permissive, wanted, {"a": PERSON}).corrupt_column == "_corrupt_record"
    with pytest.raises(OptionError, match="columnNameOfCorruptRecord=age is a field"):
        schema_of_query(options(parseMode="PERMISSIVE", columnNameOfCorruptRecord="age"), {"a": PERSON})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"valueSchema": "auto", "allowDifferentTopicSchemas": "true"}, "contradict each other"),
        ({"valueSchema": "auto", "mode": "entry"}, "valueSchema=auto only counts with mode=message"),
        ({"valueSchema": "auto", "columnStyle": "kafka"}, "valueSchema=auto only counts with columnStyle=pulsar"),
        ({"parseMode": "PERMISSIVE", "valueSchema": "raw"}, "parseMode only counts with valueSchema=auto"),
        ({"columnNameOfCorruptRecord": "c"}, "only counts with parseMode=PERMISSIVE"),
        ({"includeHeaders": "true"}, "includeHeaders only counts with columnStyle=kafka"),
        ({"columnStyle": "kafka", "mode": "entry"}, "columnStyle only counts with mode=message"),
    ],
)
def test_options_about_columns_that_do_not_go_together(given, said):
    with pytest.raises(OptionError, match=said):
        options(**given)


def test_different_schemas_are_allowed_where_bytes_are_read():
    assert not options(allowDifferentTopicSchemas="true").is_typed
    assert options(columnStyle="kafka", includeHeaders="true").included == ("all",)
