"""Values and their JSON: names, ids, policies, schemas, changes, errors. No IO, no import of ours."""
