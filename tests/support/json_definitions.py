"""Definitions of JSON schemas, as Java's client makes them of classes."""

from typing import Any

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
OTHER_POINT = {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "int"}]}
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}]}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
DATE = {"type": "int", "logicalType": "date"}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}


def pairs(key: Any, value: Any) -> Any:
    """A ``Map`` whose keys are no strings."""
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    items = {"type": "record", "name": "Pair66ab016", "namespace": "org.apache.avro.reflect", "fields": fields}
    return {"type": "array", "items": items, "java-class": "java.util.Map"}


def record(**fields: Any) -> Any:
    """A record with these types of fields."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
