"""The answers that lookup, producer, consumer and replicator get for a name, whether it exists or not."""

from __future__ import annotations

from dataclasses import replace

from interpulse.console.pages.parts.rule_answers import BAD, Way, refusal_code, ways
from interpulse.console.visit import Model, Visit
from interpulse.console.web.addresses import namespace_path, topic_path
from interpulse.model.errors import AuthorizationError, PulsarError, TenantNotFound
from interpulse.model.names import TopicName
from interpulse.model.permissions import TopicOperation
from interpulse.rules.effective_policies import effective_policies, namespace_level, topic_level

_OPERATIONS = {
    "Lookup": TopicOperation.LOOKUP,
    "Partition metadata": TopicOperation.LOOKUP,
    "Producer": TopicOperation.PRODUCE,
    "Consumer": TopicOperation.CONSUME,
}
_NOT_SHOWN = "(you may not read this policy)"


async def build(visit: Visit) -> Model:
    """Build the page. Raise unless the visitor may read the partition metadata; for a role, also the permissions.

    An empty name has no answers.
    """
    role, subscription = visit.text("role").strip(), visit.text("subscription").strip()
    roles_checked = visit.broker.roles_checked
    name: TopicName | None = None
    answers: list[Way] = []
    if visit.text("name"):
        name = visit.topic()
        await visit.check("GET", topic_path(name, "/partitions"))
        answers = await admissions(visit, name)
    if name is not None and role and roles_checked:
        await visit.check("GET", topic_path(name, "/permissions"))
        answers = [await _for_role(visit, name, way, role, subscription) for way in answers]
    return {
        "name": str(name or ""),
        "role": role,
        "subscription": subscription,
        "ways": answers,
        "roles_checked": roles_checked,
        "new_subscription": "" if name is None else await _new_subscription(visit, name),
    }


async def admissions(visit: Visit, name: TopicName) -> list[Way]:
    """Return the answers of the rules. The caller checked that the visitor may read the partition metadata."""
    return ways(await visit.broker.view(name), await _auto_creation(visit, name))


async def _auto_creation(visit: Visit, name: TopicName) -> str:
    policies = await visit.broker.namespace_policies(name.namespace_name)
    own = policies.auto_topic_creation if policies is not None else None
    level = "broker" if own is None else f"namespace {name.namespace_name}"
    if await visit.refusal("GET", namespace_path(name.namespace_name, "/autoTopicCreation")):
        return f"{level}: {_NOT_SHOWN}"
    policy = own or visit.broker.auto_topic_creation
    partitions = f", {policy.default_partitions:,} partitions" if policy.topic_type == "partitioned" else ""
    parts = [f"allowAutoTopicCreation {str(policy.allowed).lower()}"]
    if policy.allowed:
        parts.append(f"{policy.topic_type}{partitions}")
    if policy.always_allow_for_replicator is False:
        parts.append("not for replicators")
    return f"{level}: {', '.join(parts)}"


async def _for_role(visit: Visit, name: TopicName, way: Way, role: str, subscription: str) -> Way:
    """Return the answer for a role. Permissions come before rules, so that they do not reveal if the topic exists."""
    operation = _OPERATIONS.get(way.who)
    if operation is None:
        return way
    try:
        of = subscription if operation is TopicOperation.CONSUME else ""
        await visit.broker.check_role(role, operation, name, of)
    except (AuthorizationError, TenantNotFound) as error:
        rule, policy = f"role {role} has no permission for it", f"namespace {name.namespace_name}: permissions"
        return Way(way.who, BAD, str(error), refusal_code(error), rule, policy)
    return way if way.mood == BAD else replace(way, answer=f"{way.answer}; {role} may")


async def _new_subscription(visit: Visit, name: TopicName) -> str:
    try:
        record = await visit.broker.topic_policies(name)
        namespace = await visit.broker.namespace_policies(name.namespace_name)
    except PulsarError as error:
        return str(error)
    if await visit.refusal("GET", namespace_path(name.namespace_name, "/autoSubscriptionCreation")):
        return _NOT_SHOWN
    own = topic_level(record)
    namespace_policies = namespace_level(namespace, cluster=visit.host.cluster)
    policies = effective_policies(own, namespace_policies, visit.broker.policies)
    in_force = policies.auto_subscription_creation_allowed
    level = "broker"
    if own.auto_subscription_creation_allowed is not None:
        level = "topic"
    elif namespace is not None and namespace.auto_subscription_creation_allowed is not None:
        level = f"namespace {name.namespace_name}"
    verb = "is created" if in_force else "is refused"
    return f"A missing subscription {verb} ({level}: autoSubscriptionCreation {str(bool(in_force)).lower()})."
