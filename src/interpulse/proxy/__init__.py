"""The lookup proxy: clients that cannot reach the brokers reach them through it.

* `app` builds every object
* `binary_server` accepts clients, and reads CONNECT, which decides the use of a connection
* `lookup` answers lookups
* `access` authenticates clients, and speaks for them with the proxy's own credentials
* `relay` moves the bytes of a data connection, `dialer` opens its other half
* `brokers` lists the brokers, `registered_brokers` follows those in ZooKeeper
* `web_server` forwards the admin API; `meter` counts
"""
