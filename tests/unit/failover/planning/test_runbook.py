"""The runbook of a switch, as far as it depends on the file of the pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from interpulse.failover.pair_config import parse_pair_config
from interpulse.failover.planning.plan import Plan
from interpulse.failover.planning.runbook import RunbookStep, switch_plan, switch_runbook
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import parse_role

OURS = {"east": "ours", "west": "ours"}
PAID = TopicName.parse("persistent://shop/orders/paid")


def plan(kinds: Mapping[str, str] = OURS, **clients: Any) -> Plan:
    sites = {
        name: {"cluster": name, "service_url": f"pulsar://{name}:6650", "admin_url": f"http://{name}:8080"}
        for name in ("east", "west")
    }
    pair = {"name": "orders", "sites": ["east", "west"], "namespaces": ["shop/orders", "shop/billing"], "state": "/s"}
    config = parse_pair_config({"pair": pair, **sites, **({"clients": clients} if clients else {})})
    orders, billing = config.namespaces
    roles = {orders: parse_role("active;epoch=4"), billing: parse_role("active;epoch=3")}
    return Plan(config, "my pair.toml", "west", 5, roles, [PAID], kinds)


def step(made: Plan, title: str) -> RunbookStep:
    return next(each for each in switch_plan(made) if each.title == title)


def test_fence_when_namespaces_have_different_epochs_then_keeps_each() -> None:
    commands = step(plan(), "Fence east").by_hand
    assert [command.rpartition(" -d ")[2] for command in commands] == [
        """'{"role": "fenced", "epoch": 4}'""",
        """'{"role": "fenced", "epoch": 3}'""",
    ]


def test_promotion_when_written_then_has_the_epoch_of_the_switch() -> None:
    commands = step(plan(), "Promote west").by_hand
    assert all(
        command.startswith("curl -sf -X POST http://west:8080/admin/v2/namespaces/shop/") for command in commands
    )
    assert all("""'{"role": "active", "epoch": 5}'""" in command for command in commands)


WRITTEN = """echo '{"serviceUrl": "pulsar://west:6650"}' > /srv/url.json.new && mv /srv/url.json.new /srv/url.json"""
HOOK = ["/bin/move", "{to}", "{client_url} {epoch}"]


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        ({"move": ["file"], "file": "/srv/url.json"}, [WRITTEN]),
        ({"move": ["hook"], "hook": HOOK}, ["/bin/move west 'pulsar://west:6650 5'"]),
        ({"move": []}, []),
    ],
    ids=["file", "hook", "nothing"],
)
def test_clients_when_moved_without_redirect_then_commands_are_those_of_the_file(
    clients: dict[str, Any], expected: list[str]
) -> None:
    assert step(plan(**clients), "Move clients").by_hand == expected


def test_commands_when_the_path_has_a_blank_then_quote_it() -> None:
    text = switch_runbook(plan())
    assert "interpulse failover check --config 'my pair.toml' --to west\n" in text


def test_fence_when_the_origin_is_a_real_pulsar_then_only_the_command_can_hold_it() -> None:
    fence = step(plan({"east": "real", "west": "ours"}), "Fence east")
    assert (list(fence.by_hand), fence.ours) == (
        [],
        ["interpulse failover switch --config 'my pair.toml' --to west --yes"],
    )
    assert fence.holds == "`topics stats` of each topic-partition lists one producer, `interpulse.fence.orders.e4`."


def test_roles_when_the_site_is_a_real_pulsar_then_are_recorded_as_properties() -> None:
    promoted = step(plan({"east": "ours", "west": "real"}), "Promote west")
    assert promoted.by_hand == [
        f"pulsar-admin --admin-url http://west:8080 namespaces set-property {namespace} "
        "-k interpulse.failover.role -v 'active;epoch=5'"
        for namespace in ("shop/orders", "shop/billing")
    ]
    assert "namespaces get-property shop/orders -k interpulse.failover.role" in promoted.holds


def test_ways_when_a_site_is_a_real_pulsar_then_statistics_show_its_replicators() -> None:
    assert step(plan({"east": "real", "west": "ours"}), "Ways open").ours == [
        f"interpulse-admin --admin-url http://east:8080 topics stats {PAID}",
        "interpulse-admin --admin-url http://west:8080 namespaces replication-status shop/orders",
        "interpulse-admin --admin-url http://west:8080 namespaces replication-status shop/billing",
    ]
