"""Route to one remote cluster: its topics (`route_topics`), query (`route_query`), lag and rates."""
