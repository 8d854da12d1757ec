"""The page on topics tells what to do about every message that its rules and front ends can answer with."""

import ast
import re
from collections.abc import Iterator

from interpulse.model import errors
from tests.house.sources import ROOT, modules

PAGE = ROOT / "docs/reference/topic-lifecycle.md"
MODULES = (
    "interpulse.model.names",
    "interpulse.rules.bundles",
    "interpulse.rules.consistency",
    "interpulse.rules.inactivity",
    "interpulse.rules.lookup",
    "interpulse.rules.policy_checks",
    "interpulse.rules.remote_expansion",
    "interpulse.rules.topic_checks",
    "interpulse.rules.topic_operations",
    "interpulse.rules.topic_view",
    "interpulse.rules.topics",
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
    "interpulse.broker.binary.permits",
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
PASSED_IN = {"refusal", "not_served", "_invalid_override"}  # error classes as arguments, and what makes them


def messages(tree: ast.Module) -> Iterator[ast.expr]:
    """The first argument of everything that makes an error, followed to where it is written."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(owner):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
                continue
            if call.func.id in CLASSES | PASSED_IN:
                yield from written(call.args[0], owner, functions)


def written(
    text: ast.expr, owner: ast.FunctionDef | ast.AsyncFunctionDef, functions: dict[str, ast.FunctionDef]
) -> Iterator[ast.expr]:
    if isinstance(text, ast.Name):
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == text.id for t in node.targets):
                yield node.value
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Name) and text.func.id in functions:
        for node in ast.walk(functions[text.func.id]):
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value
    else:
        yield text


def template(text: ast.expr) -> str:
    """The message with … for what varies; empty if it is another error's text."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    words = [part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…" for part in parts]
    return re.sub("…+", "…", "".join(words)).strip()


TEMPLATES = sorted({(template(text), name) for name in MODULES for text in messages(modules()[name])})


def test_messages_when_collected_then_are_many() -> None:
    assert len(TEMPLATES) > 60


def test_messages_when_looked_for_then_are_on_the_page() -> None:
    """Each of these modules can answer such a message: the page says what to do about it."""
    page = " ".join(PAGE.read_text().split())
    told = [(message, module) for message, module in TEMPLATES if message not in ("", "…")]
    assert not [f"{module}: {message!r}" for message, module in told if " ".join(message.split()) not in page]


def test_page_when_read_then_explains_no_message_that_is_gone() -> None:
    section = PAGE.read_text().partition("## Messages")[2].partition("## Where this broker differs")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    explained = {message for cell in cells for message in re.findall(r"`([^`]+)`", cell)}
    assert not explained - {" ".join(message.split()) for message, _ in TEMPLATES}
