"""The commands of the group ``topics``; `topics` puts them together."""
