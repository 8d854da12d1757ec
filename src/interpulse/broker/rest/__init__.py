"""Front end of the admin API: one file per resource, named as in `interpulse.cli.admin`.

Each ends with its ``ROUTES``: method, path, handler and required permission. `server` collects them and serves HTTP.
`http` holds what all handlers share, `policies` the calls about policies, `metrics` the page for Prometheus.
`unsupported` answers what only Pulsar offers, `openapi` describes the routes.
"""
