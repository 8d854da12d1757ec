"""What Prometheus and Grafana need to know of brokers: `commands` prints and installs it.

* `dashboards`, `alerts`, `scraping`: the panels, the alert rules and the scrape configuration
* `grafana`: dashboards as Grafana's JSON, made of the descriptions in `panels`
"""
