"""The catalogue of policies: every attribute of a document has an entry, and every kind what its calls need."""

from dataclasses import fields

import pytest

from interpulse.broker.rest.policies.policy_values import _READERS
from interpulse.cli.policies.policy_forms import form_of
from interpulse.model.policies.catalogue import CATALOGUE, OF_NAMESPACES, OF_TOPICS, TOPIC_CLUSTERS, PolicyAtLevel
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies

ENTRIES = [pytest.param(entry, id=entry.level.key) for entry in (*OF_NAMESPACES, *OF_TOPICS)]


@pytest.mark.parametrize(("document", "entries"), [(NamespacePolicies, OF_NAMESPACES), (TopicPolicies, OF_TOPICS)])
def test_every_attribute_of_a_document_has_one_entry(document: type, entries: tuple[PolicyAtLevel, ...]) -> None:
    attributes = sorted(entry.attribute for entry in entries)
    assert attributes == sorted({field.name for field in fields(document)} - {"other"})


@pytest.mark.parametrize("entries", [OF_NAMESPACES, OF_TOPICS])
def test_keys_and_paths_of_a_level_are_distinct(entries: tuple[PolicyAtLevel, ...]) -> None:
    for names in ([entry.level.key for entry in entries], [entry.level.path for entry in entries if entry.level.path]):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("entry", ENTRIES)
def test_policy_with_calls_has_a_reader_of_its_kind(entry: PolicyAtLevel) -> None:
    if entry.level.path and entry.policy.kind is not TOPIC_CLUSTERS:
        assert entry.policy.kind in _READERS


@pytest.mark.parametrize("entry", ENTRIES)
def test_policy_with_commands_has_options_of_its_kind(entry: PolicyAtLevel) -> None:
    for command in entry.level.commands:
        assert form_of(entry.policy, command).options


def test_policies_have_a_level() -> None:
    assert all(policy.namespace or policy.topic for policy in CATALOGUE)
