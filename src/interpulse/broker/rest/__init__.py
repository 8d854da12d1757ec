"""The front door for the admin API."""
