"""REST calls about the properties of a namespace, which operators set and read; they mean nothing to the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.broker.rest.http.call import DONE, NAMESPACE_PATH, UNSET, Answer, Call, Route, answer_json, answer_text
from interpulse.broker.rest.http.required_permissions import on_policy
from interpulse.model.policies.policy_documents import NamespacePolicies


async def get_all(call: Call) -> Answer:
    return answer_json(dict(await _properties(call)))


async def add_all(call: Call) -> Answer:
    """Set the properties of the body. Others stay, as in Pulsar."""
    return await _add(call, call.properties())


async def remove_all(call: Call) -> Answer:
    await call.context.namespaces.update_policies(call.namespace, lambda policies: policies.changed(properties={}))
    return DONE


async def get_one(call: Call) -> Answer:
    return _value((await _properties(call)).get(call.param("key"), ""))


async def set_one(call: Call) -> Answer:
    return await _add(call, {call.param("key"): call.param("value")})


async def remove_one(call: Call) -> Answer:
    """Remove a property and return its value."""
    key, before = call.param("key"), ""

    def change(policies: NamespacePolicies) -> NamespacePolicies:
        nonlocal before
        rest = dict(policies.properties)
        before = rest.pop(key, "")
        return policies.changed(properties=rest)

    await call.context.namespaces.update_policies(call.namespace, change)
    return _value(before)


async def _properties(call: Call) -> Mapping[str, str]:
    return (await call.context.namespaces.get_policies(call.namespace)).properties


async def _add(call: Call, added: Mapping[str, str]) -> Answer:
    await call.context.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(properties={**policies.properties, **added})
    )
    return DONE


def _value(value: str) -> Answer:
    """Answer with the bare text, as Pulsar's clients expect; a missing property is empty."""
    return answer_text(value, content_type="application/json") if value else UNSET


_ALL: Final = f"{NAMESPACE_PATH}/properties"
_ONE: Final = f"{NAMESPACE_PATH}/property/{{key}}"

ROUTES: Final = (
    Route("GET", _ALL, get_all, on_policy),
    Route("PUT", _ALL, add_all, on_policy),
    Route("DELETE", _ALL, remove_all, on_policy),
    Route("GET", _ONE, get_one, on_policy),
    Route("PUT", f"{_ONE}/{{value}}", set_one, on_policy),
    Route("DELETE", _ONE, remove_one, on_policy),
)
