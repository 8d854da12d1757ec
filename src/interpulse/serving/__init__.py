"""What programs that listen share: the broker and the proxy.

* `settings`: fields of settings, and their values as text; `settings_sources` reads files, environment and options
* `listening`: addresses taken and listened on
* `tls`: certificates of services, and listening inside TLS
* `permits`: how many lookups run at once
* `exposition`: the text format of Prometheus
* `web_pages`: calls of web pages from elsewhere are refused
"""
