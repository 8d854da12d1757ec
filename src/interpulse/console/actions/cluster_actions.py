"""Actions on the replication of a namespace, on schemas, and on the settings of brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import Action, AdminCall, Field
from interpulse.console.actions.fields import TOPIC, namespace_of, topic_of
from interpulse.console.web.addresses import admin_path, namespace_path, page_url

_ADJUST: Final = "--adjust-namespace-level-policies-automatically"


def _clusters(values: Mapping[str, str]) -> list[str]:
    return [name for name in values["clusters"].split(",") if name]


def _schema_path(values: Mapping[str, str]) -> str:
    topic = topic_of(values).base
    return admin_path("schemas", topic.tenant, topic.namespace, topic.local_name, "schema")


def _to_settings(values: Mapping[str, str]) -> str:
    return page_url("broker", text=values["key"])


ADJUST: Final = Action(
    "adjust-replication",
    "Adjust the clusters, and replicate",
    "Exactly the changes of this plan are made on the other clusters, then the namespace is replicated to them. If "
    "anything differs from the plan that was shown, nothing is changed.",
    (
        Field("namespace", "Namespace"),
        Field("clusters", "Clusters"),
        Field("digest", "Digest of the plan", hint="see the page of differences"),
    ),
    call=lambda values: AdminCall(
        "POST",
        namespace_path(
            namespace_of(values),
            "/replication",
            adjustNamespaceLevelPoliciesAutomatically=True,
            planDigest=values["digest"],
        ),
        _clusters(values),
    ),
    command=lambda values: (
        *("namespaces", "set-clusters", values["namespace"], "-c", values["clusters"]),
        *(_ADJUST, "--plan-digest", values["digest"]),
    ),
    back=lambda values: page_url("replication"),
    ours_only=True,
    done="The plan was applied, and the namespace is replicated.",
)

DELETE_SCHEMA: Final = Action(
    "delete-schema",
    "Delete schema",
    "The topic has no schema from now on; its versions stay for messages that were published with them.",
    (TOPIC,),
    call=lambda values: AdminCall("DELETE", _schema_path(values)),
    command=lambda values: ("schemas", "delete", values["topic"]),
    back=lambda values: page_url("schemas", name=values["topic"]),
    done="The schema was deleted.",
    dangerous=True,
)

SET_SETTING: Final = Action(
    "update-dynamic-config",
    "Change setting",
    "All brokers of the cluster apply it immediately, and after a restart.",
    (Field("key", "Setting"), Field("value", "Value")),
    call=lambda values: AdminCall("POST", admin_path("brokers", "configuration", values["key"], values["value"])),
    command=lambda values: (
        *("brokers", "update-dynamic-config", "--config", values["key"]),
        *("--value", values["value"]),
    ),
    back=_to_settings,
    done="The setting was changed.",
)

CLEAR_SETTING: Final = Action(
    "delete-dynamic-config",
    "Restore the value of the start",
    "The dynamic value is removed; each broker uses the value of its start again.",
    (Field("key", "Setting"),),
    call=lambda values: AdminCall("DELETE", admin_path("brokers", "configuration", values["key"])),
    command=lambda values: ("brokers", "delete-dynamic-config", "--config", values["key"]),
    back=_to_settings,
    done="The setting has its value of the start again.",
)

ACTIONS: Final = (ADJUST, DELETE_SCHEMA, SET_SETTING, CLEAR_SETTING)
