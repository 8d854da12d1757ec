"""Messages for pages: the entries of a topic, the content of a message, and the filter of a search."""
