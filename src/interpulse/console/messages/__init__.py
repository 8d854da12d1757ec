"""Messages as pages show them: where a topic's entries are, what a message holds, and which of them are looked for."""
