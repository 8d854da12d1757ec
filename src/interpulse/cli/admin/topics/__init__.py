"""Commands of the group ``topics``; `topics` collects them."""
