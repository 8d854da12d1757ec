"""The lookup proxy: clients that reach no broker reach the brokers through it.

* `app` builds every object
* `binary_server` accepts clients, `first_frame` and `greeting` read CONNECT, which decides what becomes of a connection
* `lookup` answers questions
* `access` says who clients are and who the proxy is, `known_client` is a client that it speaks for
* `relay` moves the bytes of a data connection, `dialer` opens its other half, `forwarding` greets the broker
* `brokers` knows the brokers, `registered_brokers` follows those in ZooKeeper, `targets` are the rules of the settings
* `web_server` forwards the admin API; `meter` counts
"""
