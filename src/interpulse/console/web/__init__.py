"""The web side of all pages: responses, sessions, templates, addresses and formats."""
