"""Scrape configuration of Prometheus, with the labels that the dashboards need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def scrape_configuration(targets: Sequence[str], *, rule_file: str | None = None) -> dict[str, Any]:
    """Return a scrape configuration. ``targets`` are ``host:port`` of each broker's web service.

    Public dashboards for Apache Pulsar select brokers by ``job="broker"``, those for Kubernetes by the pod's name. The
    broker's own labels, such as the cluster, are kept.
    """
    broker = {
        "job_name": "broker",
        "honor_labels": True,
        "metrics_path": "/metrics",
        "scrape_interval": "15s",
        "static_configs": [{"targets": list(targets)}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "regex": r"(.+):\d+", "target_label": "kubernetes_pod_name"}
        ],
    }
    rule_files = {"rule_files": [rule_file]} if rule_file is not None else {}
    return {"global": {"evaluation_interval": "15s"}, **rule_files, "scrape_configs": [broker]}
