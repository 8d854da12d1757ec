"""JSON bodies of the admin API: refused as the caller's fault, or every field is what the table of its body says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

from interpulse.broker.rest.http import bodies
from interpulse.broker.rest.http.call import Call
from interpulse.broker.rest.http.fields import Body
from interpulse.model.errors import PulsarError
from interpulse.rules.policy_checks import Limits, check_new_policies

BODIES: Final = [value for name, value in sorted(vars(bodies).items()) if isinstance(value, Body) and name[0] != "_"]
NAMES: Final = sorted({name for body in vars(bodies).values() if isinstance(body, Body) for name in body.fields})
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31 - 1, 2**31, 2**63, 1.5, "", "standalone", "0x00000000", "0xffffffff", "4"),
    *("\ud800", "destination_storage", "producer_request_hold", "delete_when_no_subscriptions", "AVRO", "earliest"),
)
DEPTH_MAX: Final = 5
LIST, OBJECT = len(VALUES), len(VALUES) + 1


def one(data: bytes) -> None:
    """The first byte chooses the body. The others are read as JSON, and as choices among names and values."""
    if not data:
        return
    body = BODIES[data[0] % len(BODIES)]
    check(body, data[1:])
    check(body, json.dumps(chosen_object(iter(data[1:]), 0)).encode())


def check(body: Body, content: bytes) -> None:
    call = cast(Call, SimpleNamespace(body=content))
    call.json = lambda: Call.json(call)  # type: ignore[method-assign]
    try:
        fields = Call.object(call, body)
        if body is bodies.NAMESPACE_POLICIES:
            check_new_policies(fields, Limits(partitions_max=1000))
    except PulsarError as error:
        assert 400 <= error.http_status < 500
        assert str(error)


def chosen_object(choices: Iterator[int], depth: int) -> dict[str, Any]:
    number = next(choices, 0) % 4
    return {NAMES[next(choices, 0) % len(NAMES)]: chosen(choices, depth + 1) for _ in range(number)}


def chosen(choices: Iterator[int], depth: int) -> Any:
    choice = next(choices, 0) % (len(VALUES) + 2)
    if choice < len(VALUES) or depth > DEPTH_MAX:
        return VALUES[choice % len(VALUES)]
    if choice == LIST:
        return [chosen(choices, depth + 1) for _ in range(next(choices, 0) % 4)]
    return chosen_object(choices, depth)


def seeds() -> Iterator[bytes]:
    for number, body in enumerate(BODIES):
        values: dict[str, Any] = dict.fromkeys(body.fields)
        yield bytes([number]) + json.dumps(values).encode()
        for name in body.fields:
            yield bytes([number, 1, NAMES.index(name), OBJECT, 0])
            yield bytes([number, 1, NAMES.index(name), LIST, 1, VALUES.index("4")])
