"""Values and their JSON: names, ids, policies, schemas, changes, errors. No IO, no other import of the package."""
