"""Python classes as Avro definitions."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interpulse.cli.admin.schema_extraction import NotExtractable, avro_definition, load_class
from interpulse.rules.schema_compatibility.avro_types import parse_avro
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Wheel:
    size: int
    spare: Wheel | None = None


@dataclass
class Car:
    maker: str
    color: Color
    second_color: Color | None = Color.BLUE
    doors: int = 4
    price: float | None = None
    wheels: list[Wheel] = field(default_factory=list)
    labels: dict[str, bytes] = field(default_factory=dict)
    one_wheel: Wheel | None = None
    built: datetime.date = datetime.date(2020, 1, 1)
    seen: datetime.datetime | None = None
    number: uuid.UUID | None = None
    either: int | str = 5
    spots: tuple[bool, ...] = ()


def fields(of: type, **options: bool) -> dict[str, dict[str, Any]]:
    return {each.pop("name"): each for each in avro_definition(of, **options)["fields"]}


def test_dataclass_when_extracted_then_fields_follow_their_annotations() -> None:
    color = {"type": "enum", "name": "Color", "namespace": __name__, "symbols": ["RED", "BLUE"]}
    spare = {"name": "spare", "type": ["null", f"{__name__}.Wheel"], "default": None}
    wheel_fields = [{"name": "size", "type": "long"}, spare]
    wheel = {"type": "record", "name": "Wheel", "namespace": __name__, "fields": wheel_fields}
    assert fields(Car) == {
        "maker": {"type": "string"},
        "color": {"type": color},
        "second_color": {"type": [f"{__name__}.Color", "null"], "default": "BLUE"},
        "doors": {"type": "long", "default": 4},
        "price": {"type": ["null", "double"], "default": None},
        "wheels": {"type": {"type": "array", "items": wheel}, "default": []},
        "labels": {"type": {"type": "map", "values": "bytes"}, "default": {}},
        "one_wheel": {"type": ["null", f"{__name__}.Wheel"], "default": None},
        "built": {"type": {"type": "int", "logicalType": "date"}},
        "seen": {"type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        "number": {"type": ["null", {"type": "string", "logicalType": "uuid"}], "default": None},
        "either": {"type": ["long", "string"], "default": 5},
        "spots": {"type": {"type": "array", "items": "boolean"}},
    }


@pytest.mark.parametrize("always_allow_null", [False, True])
def test_dataclass_when_extracted_then_broker_would_take_it(always_allow_null: bool) -> None:
    definition = avro_definition(Car, always_allow_null=always_allow_null)
    assert parse_avro(json.dumps(definition).encode()).name == f"{__name__}.Car"


def test_dataclass_when_null_is_always_allowed_then_defaults_stay_first() -> None:
    shown = fields(Car, always_allow_null=True)
    assert shown["maker"] == {"type": ["null", "string"], "default": None}
    assert shown["doors"] == {"type": ["long", "null"], "default": 4}
    assert shown["price"] == {"type": ["null", "double"], "default": None}


def test_pydantic_model_when_extracted_then_as_a_dataclass() -> None:
    pydantic = pytest.importorskip("pydantic")
    tags = (list[str], pydantic.Field(default_factory=list))
    model = pydantic.create_model("Order", id=(int, ...), note=(str | None, None), tags=tags)
    assert fields(model) == {
        "id": {"type": "long"},
        "note": {"type": ["null", "string"], "default": None},
        "tags": {"type": {"type": "array", "items": "string"}, "default": []},
    }


@dataclass
class Odd:
    price: decimal.Decimal


@dataclass
class Keyed:
    names: dict[int, str]


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (Odd, "Odd.price: Avro has no form for <class 'decimal.Decimal'>; known are bool, int"),
        (Keyed, "Keyed.names: Avro has no form for dict"),
        (str, "builtins:str is neither a dataclass nor a pydantic model"),
    ],
)
def test_class_when_avro_has_no_form_then_says_where(of: type, sentence: str) -> None:
    with pytest.raises(NotExtractable, match=sentence):
        avro_definition(of)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("json", "'json' does not name a class; the form is module:Class"),
        ("no_such_module:A", "no_such_module:A cannot be loaded: No module named"),
        ("json:Nope", "json:Nope cannot be loaded: module 'json' has no attribute 'Nope'"),
        ("json:dumps", "json:dumps is not a class"),
    ],
)
def test_class_when_it_cannot_be_loaded_then_says_why(path: str, sentence: str) -> None:
    with pytest.raises(NotExtractable, match=sentence):
        load_class(path)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working directory."""
    source = "from dataclasses import dataclass\n\n@dataclass\nclass Item:\n    id: int\n"
    (tmp_path / "shop_for_test.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    return "shop_for_test:Item"


ITEM = {"type": "record", "name": "Item", "namespace": "shop_for_test", "fields": [{"name": "id", "type": "long"}]}


def test_extract_when_no_topic_is_given_then_prints_the_definition(run_admin: RunAdmin, shop: str) -> None:
    assert json.loads(run_admin("schemas", "extract", shop).stdout) == ITEM


def test_extract_when_dry_then_prints_what_would_be_sent(web: StubWeb, run_admin: RunAdmin, shop: str) -> None:
    topic, _, body = run_admin("schemas", "extract", shop, "t/ns/a", "-t", "json", "-n").stdout.partition("\n")
    shown = json.loads(body)
    assert (topic, shown["type"], json.loads(shown["schema"])) == ("persistent://t/ns/a", "JSON", ITEM)
    assert shown["properties"] == {"__alwaysAllowNull": "false", "__jsr310ConversionEnabled": "false"}
    assert web.asked == []


def test_extract_when_topic_is_given_then_registers(web: StubWeb, run_admin: RunAdmin, shop: str) -> None:
    web.answer("POST", "/admin/v2/schemas/t/ns/a/schema", {"version": {"version": 0}})
    assert run_admin("schemas", "extract", shop, "t/ns/a").exit_code == 0
    assert (web.last.body["type"], json.loads(web.last.body["schema"])) == ("AVRO", ITEM)


def test_extract_when_class_is_missing_then_says_so(run_admin: RunAdmin, shop: str) -> None:
    result = run_admin("schemas", "extract", "shop_for_test:Nope")
    assert result.exit_code == 2
    assert "shop_for_test:Nope cannot be loaded" in result.stderr
