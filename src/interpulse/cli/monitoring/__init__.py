"""Configuration of Prometheus and Grafana for brokers; `commands` prints and installs it."""
