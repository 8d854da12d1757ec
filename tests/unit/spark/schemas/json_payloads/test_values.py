"""Single values of JSON payloads. What each spelling means, or that it is refused, is what Java's client said of it
(Pulsar 5.0.0-M1, Jackson 2.21); rows that differ from it say so."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from interpulse.spark.schemas.json_payloads.reader import json_reader
from interpulse.spark.schemas.json_payloads.values import JsonMisfit

AT = datetime(2024, 2, 3, 4, 5, 6, 789_000, UTC)
LOCAL = AT.replace(tzinfo=None)
BIG = 12345678901234567890123
LONG_MAX = 9223372036854775807
KINDS = {
    "bytes": "bytes",
    "int": "int",
    "long": "long",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "enum": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
    "character": {"type": "int", "java-class": "java.lang.Character"},
    "fixed": {"type": "fixed", "name": "Two", "size": 2},
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp in milliseconds": {"type": "long", "logicalType": "timestamp-millis"},
    "local timestamp": {"type": "long", "logicalType": "local-timestamp-millis"},
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "time in microseconds": {"type": "long", "logicalType": "time-micros"},
    "java.util.Date": {"type": "record", "name": "Date", "namespace": "java.util", "fields": []},
    "java.time.ZonedDateTime": {"type": "record", "name": "ZonedDateTime", "namespace": "java.time", "fields": []},
}
TAKEN: dict[str, list[tuple[str, Any]]] = {
    "int": [
        ('"7"', 7),
        ('" 7 "', 7),
        ('"+7"', 7),
        ('"007"', 7),
        ("7.0", 7),
        ("1e2", 100),
        ("-2147483648", -(2**31)),
        ('""', None),
        ('" "', None),
        ('"null"', None),
        ("null", None),
    ],
    "long": [('"7"', 7), ("1e18", 10**18), ("9223372036854775807", LONG_MAX), ("92233720368547758.07e2", LONG_MAX)],
    "double": [
        ('"NaN"', nan),
        ('"Infinity"', inf),
        ('"+INF"', inf),
        ('"-Infinity"', -inf),
        ('"-INF"', -inf),
        ("1", 1.0),
        ('"1.5"', 1.5),
        ('" 1.5 "', 1.5),
        ("1e400", inf),
        ("-1e400", -inf),
        ('"1e400"', inf),
        (str(BIG), float(BIG)),
        ('""', None),
        ('"null"', None),
        ("NaN", nan),
        ("-Infinity", -inf),
        ("1" + "0" * 400, inf),  # Java refuses bare words; Python writes them
    ],
    "boolean": [
        ('"true"', True),
        ('"TRUE"', True),
        ('"True"', True),
        ('" true "', True),
        ('"false"', False),
        ("1", True),
        ("0", False),
        ("2", True),
        ("-1", True),
        ('""', None),
        ('"null"', None),
    ],
    "string": [
        ("5", "5"),
        ("5.10", "5.10"),
        ("1e2", "1e2"),
        ("true", "true"),
        ("12345678901234567890.12300",) * 2,
        ("0.000000001", "0.000000001"),
        ("1E400", "1E400"),
        ("-0.0", "-0.0"),
        ('""', ""),
        ('"null"', "null"),
    ],
    "bytes": [
        ('"AP8="', b"\0\xff"),
        ('"AP+/"', b"\0\xff\xbf"),
        ('""', b""),
        ('"AP8=\\n"', b"\0\xff"),
        ("[0,255]", b"\0\xff"),
        ("[0,-1]", b"\0\xff"),
    ],
    "enum": [('"RED"', "RED"), ('" RED "', "RED"), ("0", "RED"), ("1", "GREEN"), ('"1"', "GREEN")],
    "character": [('"c"', 99), ("99", 99)],
    "fixed": [('"AP8="', b"\0\xff")],
    "decimal": [
        ("1.25", Decimal("1.25")),
        ('"1.25"', Decimal("1.25")),
        ('" 1.25 "', Decimal("1.25")),
        ("1e3", Decimal(1000)),
        ("123456789012345678.91", Decimal("123456789012345678.91")),
        ("5", Decimal(5)),
        ('""', None),
    ],
    "timestamp": [
        ("1706933106.789", AT),
        ("1706933106.789012345", AT.replace(microsecond=789_012)),
        ('"1706933106.789"', AT),
        ("1.706933106789E9", AT),
        ("0.0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("null", None),
        ('""', None),
        ("-1.5", datetime(1969, 12, 31, 23, 59, 58, 500_000, UTC)),
        ("-0.000000001", datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        ("253402300799.999999999", datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
        ("-62135596800.0", datetime(1, 1, 1, tzinfo=UTC)),
        ('"2024-02-03T04:05:06.789Z"', AT),
        ('"2024-02-03T06:05:06.789+02:00"', AT),
        ("1706933106789000", AT),
        ('"1706933106789000"', AT),  # as a ``long`` of Java reads them
    ],
    "timestamp in milliseconds": [("1706933106.789", AT), ("1706933106789", AT)],
    "local timestamp": [
        ("[2024,2,3,4,5,6,789000000]", LOCAL),
        ("[2024,2,3,4,5]", datetime(2024, 2, 3, 4, 5)),
        ("[]", None),
        ("[2024,2,3,4,5,6]", datetime(2024, 2, 3, 4, 5, 6)),
        ("[2024,2,3,4,5,6,789]", datetime(2024, 2, 3, 4, 5, 6)),
        ('"2024-02-03T04:05:06.789"', LOCAL),
        ('"2024-02-03T04:05:06Z"', datetime(2024, 2, 3, 4, 5, 6)),
        ("1706933106789", LOCAL),  # as a ``long`` of Java reads it
    ],
    "date": [
        ("[2024,2,3]", date(2024, 2, 3)),
        ("19756", date(2024, 2, 3)),
        ('"2024-02-03"', date(2024, 2, 3)),
        ('"2024-02-03T04:05:06"', date(2024, 2, 3)),
        ('"2024-02-03T04:05:06Z"', date(2024, 2, 3)),
        ("[]", None),
        ('""', None),
    ],
    "time": [
        ("[4,5]", 14_700_000),
        ("[4,5,6]", 14_706_000),
        ("[4,5,6,789000000]", 14_706_789),
        ('"04:05"', 14_700_000),
        ('"04:05:06.789"', 14_706_789),
        ("[]", None),
        ('""', None),
        ("14706789", 14_706_789),  # as an ``int`` of Java reads it
    ],
    "time in microseconds": [("[4,5,6,789000]", 14_706_000_789)],
    "java.util.Date": [("1706933106789", AT), ('"1706933106789"', AT), ('"2024-02-03T04:05:06.789Z"', AT)],
    "java.time.ZonedDateTime": [("1706933106.789000000", AT), ("1706933106", AT.replace(microsecond=0))],
}
REFUSED = {
    "int": [
        "true",
        '"x"',
        '"7.0"',
        '"1e2"',
        "3000000000",
        "2147483648.0",
        "[7]",
        "{}",
        '"NaN"',
        "1e400",
        "NaN",
        "7.9",
        "-0.5",
    ],  # Java drops the fraction
    "long": [
        "9223372036854775808",
        "1e19",
        '"9223372036854775808"',
        "true",
        "9223372036854775807.5",
        "123456789012345678.9",
    ],  # Java drops the fraction, and digits
    "double": ["true", '"NAN"', '"infinity"', '"1,5"', '"1_0"', "[1.5]", '"0x1p3"'],
    "boolean": ['"tRue"', '"yes"', '"1"', "1.0", '"t"', '"NULL"', "[]"],
    "string": ["{}", "[]", '["x"]', "NaN", '"\\ud800"'],  # Java reads half a surrogate pair
    "bytes": ['"AP8"', '"AP_-"', '"!!"', "5", '"A P8="', "[256]", '["0"]', "{}"],
    "enum": ['"red"', '"BLUE"', "5", '""', "1.0", "true", "[]", "{}"],
    "character": ['"cd"', "1.5"],
    "fixed": ['"AP//"', '"AA=="', "[1]"],
    "decimal": [
        '"AQ=="',
        '"x"',
        "true",
        "[1.5]",
        '"NaN"',
        "NaN",
        "{}",
        "1.255",
        "1e19",
        "1234567890123456789.5",
        "1e1000000",
    ],  # Java's classes know neither scale nor precision
    "timestamp": [
        '"2024-02-03T04:05:06"',
        '"2024-02-03"',
        "1e20",
        "1.5e30",
        "[1706933106,5]",
        "true",
        '"NaN"',
        "NaN",
        "253402300800.0",
        "-62135596800.1",
        '"+10000-01-01T00:00:00Z"',
        "253402300800000000",
    ],  # Java has these years
    "timestamp in milliseconds": ["253402300800000", "-62135596800001", "1e1000000"],
    "local timestamp": [
        "[2024,2,3]",
        "[2024,2,3,4]",
        '"2024-02-03T04:05:06+02:00"',
        '"2024-02-03 04:05:06"',
        "1.5",
        '"2024-02-03"',
        "[2024,2,3,4,5,6,7,8]",
        '["2024","2","3","4","5"]',
        "[2024,2,30,0,0]",
        "{}",
        "[10000,1,1,0,0]",
        "[0,1,1,0,0]",
    ],  # Java has these years
    "date": [
        '"19756"',
        '"40680224.6"',
        '"2024-W05-6"',
        "[2024,13,3]",
        "[2024,2]",
        "[2024,2,3,4]",
        "1.5",
        '["2024","2","3"]',
        "true",
        "{}",
        '"2024-02-03T23:05:06-05:00"',
        '"2024-2-3"',
        "[2024.7,2,3]",
        "[2024,2,30]",
        "[10000,1,1]",
        "[0,1,1]",
        "20240203",
    ],  # Java has these years
    "java.util.Date": ["1706933106789.5", "[1706933106789]"],
    "time": ["[24,0]", "[4]", '"4:5"', "[4,5,6,7,8]", '["4","5"]', "{}"],
}


def read(name, spelled):
    definition = {"type": "record", "name": "R", "fields": [{"name": "v", "type": ["null", KINDS[name]]}]}
    return json_reader(json.dumps(definition).encode())(b'{"v": %s}' % spelled.encode())["v"]


@pytest.mark.parametrize(("name", "spelled", "value"), [(name, *row) for name, rows in TAKEN.items() for row in rows])
def test_spelling_means_what_java_reads(name, spelled, value):
    found = read(name, spelled)
    assert repr(found) == repr(value) or (type(found) is Decimal and found == value)


@pytest.mark.parametrize(("name", "spelled"), [(name, spelled) for name, rows in REFUSED.items() for spelled in rows])
def test_other_spellings_are_refused_with_field_value_and_rule(name, spelled):
    with pytest.raises(JsonMisfit, match=r"^column v: .+ does not fit (?:[A-Z_]+|fixed).*: .+") as refused:
        read(name, spelled)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("name", "spelled", "said"),
    [
        ("int", "7.9", "column v: 7.9 does not fit INT: it takes whole numbers from -2147483648 to 2147483647"),
        ("enum", '"BLUE"', 'column v: "BLUE" does not fit ENUM: its symbols are RED, GREEN'),
        ("fixed", '"AA=="', 'column v: "AA==" does not fit fixed(2): it takes 2 bytes, not 1'),
        (
            "decimal",
            "1.255",
            "column v: 1.255 does not fit DECIMAL(20,2): it takes numbers that it holds without rounding",
        ),
        (
            "timestamp in milliseconds",
            "253402300800.0",
            "column v: 253402300800.0 does not fit TIMESTAMP: it takes milliseconds as a whole number, "
            "seconds with a fraction, and ISO 8601 with an offset, from the year 1 to 9999",
        ),
    ],
)
def test_what_a_refusal_says(name, spelled, said):
    with pytest.raises(JsonMisfit) as refused:
        read(name, spelled)
    assert str(refused.value) == said
