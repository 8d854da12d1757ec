"""The page on topics tells what to do about every message that its rules and front ends can answer with."""

from interpulse.model import errors
from tests.house.messages import explained, templates
from tests.house.sources import ROOT, modules

PAGE = ROOT / "docs/reference/topic-lifecycle.md"
MODULES = (
    "interpulse.model.names",
    "interpulse.rules.bundles",
    "interpulse.rules.consistency",
    "interpulse.rules.inactivity",
    "interpulse.rules.isolation",
    "interpulse.rules.lookup",
    "interpulse.rules.placement",
    "interpulse.rules.policy_checks",
    "interpulse.rules.remote_expansion",
    "interpulse.rules.topic_checks",
    "interpulse.rules.topic_operations",
    "interpulse.rules.topic_view",
    "interpulse.rules.topics",
    "interpulse.broker.ownership.other_brokers",
    "interpulse.broker.ownership.ownership",
    "interpulse.broker.ownership.bundle_locks",
    "interpulse.broker.ownership.bundle_placement",
    "interpulse.broker.ownership.shared_ownership",
    "interpulse.broker.rest.http.at_owner",
    "interpulse.broker.topics.deletion",
    "interpulse.broker.config.dynamic_config",
    "interpulse.broker.topics.lifecycle",
    "interpulse.broker.topics.lookup.lookup",
    "interpulse.broker.topics.topic_info",
    "interpulse.broker.topics.topic_policies",
    "interpulse.broker.topics.topic_reading",
    "interpulse.broker.live.registry.topic_registry",
    "interpulse.broker.binary.transport.connection",
    "interpulse.broker.binary.consumers",
    "interpulse.broker.binary.handlers",
    "interpulse.broker.binary.lookup",
    "interpulse.serving.permits",
    "interpulse.storage.prompt",
    "interpulse.broker.binary.producers",
    "interpulse.broker.binary.topics",
    "interpulse.broker.rest.brokers",
    "interpulse.broker.rest.http.call",
    "interpulse.broker.rest.http.fields",
    "interpulse.broker.rest.lookup",
    "interpulse.broker.rest.policies.namespace_policies",
    "interpulse.broker.rest.http.opening",
    "interpulse.broker.rest.policies.policy_bodies",
    "interpulse.broker.rest.http.routing",
    "interpulse.broker.rest.subscriptions",
    "interpulse.broker.rest.topic_stats",
    "interpulse.broker.rest.topics",
    "interpulse.broker.rest.unsupported",
)
CLASSES = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
# error classes as arguments, what makes them, and one of a store
PASSED_IN = {"refusal", "not_served", "_invalid_override", "SessionLost"}


TEMPLATES = sorted({(text, name) for name in MODULES for text in templates(modules()[name], CLASSES | PASSED_IN)})


def test_messages_when_collected_then_are_many() -> None:
    assert len(TEMPLATES) > 60


def test_messages_when_looked_for_then_are_on_the_page() -> None:
    """Each of these modules can answer such a message: the page says what to do about it."""
    page = " ".join(PAGE.read_text().split())
    assert not [f"{module}: {message!r}" for message, module in TEMPLATES if message not in page]


def test_page_when_read_then_explains_no_message_that_is_gone() -> None:
    section = PAGE.read_text().partition("## Messages")[2].partition("## Where this broker differs")[0]
    assert not explained(section) - {message for message, _ in TEMPLATES}
