"""The lookup proxy: clients that cannot reach the brokers reach them through it.

* `app` builds every object
* `binary_server` accepts clients, `greeting` reads CONNECT, which decides the use of a connection
* `lookup` answers lookups
* `access` authenticates clients and holds the proxy's own credentials, `authenticated_client` is a client that the
  proxy speaks for
* `relay` moves the bytes of a data connection, `dialer` opens its other half, `forwarding` greets the broker
* `brokers` lists the brokers, `registered_brokers` follows those in ZooKeeper, `targets` are the rules of the settings
* `web_server` forwards the admin API; `meter` counts
"""
