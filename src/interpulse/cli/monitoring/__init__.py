"""Configuration of Prometheus and Grafana for brokers; `commands` prints and installs it.

* `dashboards`, `alerts`, `scraping`: the panels, the alert rules and the scrape configuration
* `grafana`: Grafana's JSON, built from the descriptions in `panels`
"""
