"""Policies in calls: the value that a call sends, for namespaces and topics alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from interpulse.broker.rest.http import bodies
from interpulse.broker.rest.http.call import Answer, Call, Handler, Route, answer_json
from interpulse.broker.rest.http.fields import Body
from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import LONG_MAX, read_integer
from interpulse.model.operations import policy_operations
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.catalogue import PolicyAtLevel
from interpulse.model.policies.policy_kinds import Kind
from interpulse.rules.policy_checks import Limits, check_quota_type, check_value


def policy_limits(call: Call) -> Limits:
    """Return the broker's settings that limit policies."""
    config = call.context.dynamic.config
    return Limits(config.partitions_max, config.max_message_size, config.alone)


def policy_value(call: Call, entry: PolicyAtLevel) -> Any:
    """Return the policy that the call sets; None if it removes the policy. Raise the errors of its check."""
    value = _in_query(call, entry.name) if entry.level.in_query else _in_body(call, entry)
    return None if value is None else check_value(entry.policy.kind, entry.name, value, policy_limits(call))


def policy_routes(
    entry: PolicyAtLevel,
    get: Callable[[PolicyAtLevel, Call], Awaitable[Answer]],
    store: Callable[[PolicyAtLevel, Call, Any], Awaitable[None]],
    setter: Handler | None = None,
) -> Iterator[Route]:
    """Yield the routes of one policy, with descriptions that name it. ``setter`` replaces the handler that sets it."""

    async def get_policy(call: Call) -> Answer:
        return await get(entry, call)

    async def set_policy(call: Call) -> None:
        await store(entry, call, policy_value(call, entry))

    async def remove_policy(call: Call) -> None:
        await store(entry, call, None)

    operations = policy_operations(entry)
    if entry.help:
        get_policy.__doc__, set_policy.__doc__ = f"Get {entry.help}.", f"Set {entry.help}."
        remove_policy.__doc__ = f"Remove {entry.help}."
    yield Route(operations.get, get_policy)
    yield Route(operations.set, setter or set_policy)
    if entry.level.removable:
        yield Route(operations.remove, remove_policy)


def quota_type(call: Call) -> str:
    """Return the type of backlog quota in the query."""
    return check_quota_type(call.query.get("backlogQuotaType"))


def answer_policy(entry: PolicyAtLevel, value: Any) -> Answer:
    """Answer a policy as JSON; the policy is not set if the value is None."""
    if value is not None:
        return answer_json(entry.policy.kind.write(value))
    return answer_json(entry.level.unset) if entry.level.unset_status == 200 else Answer(entry.level.unset_status)


def _in_body(call: Call, entry: PolicyAtLevel) -> Any:
    removal = entry.level.cleared_by
    if (removal == "no body" and call.json_or_none() is None) or (removal == "null" and call.json() is None):
        return None
    return _READERS[entry.policy.kind](call)


def _in_query(call: Call, name: str) -> int | None:
    """Return the integer in the query; None without one. Refuse a body, which Pulsar ignores."""
    if call.json_or_none() is not None:
        raise InvalidRequest(f"{name} is expected in the query, as in ?{name}=60, and not in the body")
    text = call.query.get(name, "")
    if not text:
        return None
    number = read_integer(text, most=LONG_MAX)
    if number is None:
        raise InvalidRequest(f"{name} must be an integer, not {text[:100]}")
    return number


def _object(body: Body) -> Callable[[Call], Any]:
    return lambda call: call.object(body)


def _persistence(call: Call) -> Any:
    """Return the body. A null does not remove this policy, as in Pulsar."""
    if call.json_or_none() is None:
        raise InvalidRequest("persistence policies should not be null")
    return call.object(bodies.PERSISTENCE)


_READERS: Final[Mapping[Kind, Callable[[Call], Any]]] = {
    **{kind: _object(body) for kind, body in bodies.POLICY_BODIES.items()},
    **dict.fromkeys((kinds.COUNT, kinds.SECONDS, kinds.MINUTES, kinds.INTERVAL), Call.integer),
    **dict.fromkeys((kinds.BYTES, kinds.MESSAGE_SIZE), Call.integer),
    kinds.FLAG: Call.boolean,
    kinds.STRATEGY: Call.json,
    kinds.TOPIC_STRATEGY: Call.json_or_none,
    kinds.TYPES: Call.strings,
    kinds.PERSISTENCE: _persistence,
}
