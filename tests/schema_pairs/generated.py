"""Cases made by chance from a fixed seed: a record, and what a few edits make of it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.schema_pairs.cases import Case, array, avro, enum, fixed, fld, mapping, record

SEED = 20
COUNT = 160
NAMES = ("a", "b", "c", "d")
DEFAULTS: dict[str, Any] = {"int": 1, "long": 2, "float": 1.5, "double": 2.5, "string": "s", "bytes": "b"}


def cases() -> Iterator[Case]:
    """Always the same ones; every fifth has a longer history, every fourth is JSON."""
    chance = random.Random(SEED)
    for number in range(COUNT):
        chain = [_record(chance)]
        for _ in range(chance.randint(2, 3) if number % 5 == 0 else 1):
            chain.append(_edited(chance, chain[-1]))
        kind = "JSON" if number % 4 == 0 else "AVRO"
        *history, new = (avro(definition, kind) for definition in chain)
        yield Case(f"generated-{number:03}", tuple(history), new)


def _record(chance: random.Random) -> dict[str, Any]:
    names = chance.sample(NAMES, chance.randint(1, 3))
    return record(*(_field(chance, name, depth=0) for name in names), name="R")


def _field(chance: random.Random, name: str, depth: int, within: str = "N") -> dict[str, Any]:
    kind = _type(chance, f"{within}{name}", depth)
    if isinstance(kind, str) and kind in DEFAULTS and chance.random() < 0.4:
        return fld(kind, name, default=DEFAULTS[kind])
    if isinstance(kind, list) and kind[:1] == ["null"] and chance.random() < 0.4:
        return fld(kind, name, default=None)
    return fld(kind, name)


def _type(chance: random.Random, name: str, depth: int) -> Any:
    if depth > 2 or chance.random() < 0.4:
        return chance.choice(("boolean", *DEFAULTS))
    deeper = depth + 1
    match chance.randrange(6):
        case 0:
            return array(_type(chance, f"{name}i", deeper))
        case 1:
            return mapping(_type(chance, f"{name}v", deeper))
        case 2:
            return enum(*chance.sample("PQRS", chance.randint(1, 3)), name=name)
        case 3:
            return fixed(chance.choice((4, 8)), name=name)
        case 4:
            return _union(chance, name, deeper)
        case _:
            return record(*(_field(chance, each, deeper, name) for each in chance.sample(NAMES, 2)), name=name)


def _union(chance: random.Random, name: str, depth: int) -> list[Any]:
    """Each branch of another kind, so that the union may hold them all."""
    branches = {_kind(each): each for each in (_type(chance, f"{name}{n}", depth) for n in range(chance.randint(1, 3)))}
    branches.pop("union", None)
    branches["null"] = "null"
    return sorted(branches.values(), key=lambda each: each != "null" or chance.random() < 0.2)


def _kind(kind: Any) -> str:
    return "union" if isinstance(kind, list) else kind if isinstance(kind, str) else str(kind["type"])


def _edited(chance: random.Random, definition: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(definition)
    for _ in range(chance.randint(1, 2)):
        place = chance.choice(list(_records(changed)))
        chance.choice(EDITS)(chance, place)
    return changed


def _records(kind: Any) -> Iterator[dict[str, Any]]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _records(branch)
    elif isinstance(kind, dict):
        if kind["type"] == "record":
            yield kind
        for part in [kind.get("items"), kind.get("values"), *(each["type"] for each in kind.get("fields", []))]:
            yield from _records(part)


def _add(chance: random.Random, place: dict[str, Any]) -> None:
    free = [name for name in NAMES if all(each["name"] != name for each in place["fields"])]
    if free:
        place["fields"].insert(0, _field(chance, chance.choice(free), depth=3, within=place["name"]))


def _drop(chance: random.Random, place: dict[str, Any]) -> None:
    if place["fields"]:
        place["fields"].pop(chance.randrange(len(place["fields"])))


def _retype(chance: random.Random, place: dict[str, Any]) -> None:
    if place["fields"]:
        each = chance.choice(place["fields"])
        each["type"] = chance.choice(("int", "long", "double", "string", "bytes"))
        each.pop("default", None)


def _widen(chance: random.Random, place: dict[str, Any]) -> None:
    for each in place["fields"]:
        if not isinstance(each["type"], list) and each["type"] != "null" and "default" not in each:
            each["type"] = ["null", each["type"]] if chance.random() < 0.5 else each["type"]


def _narrow(chance: random.Random, place: dict[str, Any]) -> None:
    for each in place["fields"]:
        if isinstance(each["type"], list) and each["type"]:
            each["type"].pop(chance.randrange(len(each["type"])))
            each.pop("default", None)


def _rename(chance: random.Random, place: dict[str, Any]) -> None:
    place["name"] += chance.choice(("Two", "Three"))


def _alias(chance: random.Random, place: dict[str, Any]) -> None:
    if place["fields"]:
        each = chance.choice(place["fields"])
        each["aliases"] = [each["name"]]
        each["name"] = f"{each['name']}x"


def _symbols(chance: random.Random, place: dict[str, Any]) -> None:
    for each in place["fields"]:
        if isinstance(each["type"], dict) and each["type"]["type"] == "enum":
            each["type"]["symbols"] = chance.sample("PQRS", 2)


EDITS: tuple[Callable[[random.Random, dict[str, Any]], None], ...] = (
    _add,
    _add,
    _drop,
    _retype,
    _retype,
    _widen,
    _narrow,
    _rename,
    _alias,
    _symbols,
)
