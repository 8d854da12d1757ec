"""The way to one remote cluster: its topics (`route_topics`), its query (`route_query`), its lag and its rates."""
