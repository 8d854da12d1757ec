"""Shared code of programs that listen: the broker and the proxy.

* `settings`: declarations of settings, and their values from files, the environment and options
* `listening`: addresses, and listening on them
* `tls`: certificates of services, and listening with TLS
* `admission`: limits of connections, lookups and requests
* `address_events`: log lines of dropped connections and failed authentications
* `exposition`: the text format of Prometheus
* `web_pages`: refusal of requests from foreign web pages
"""
