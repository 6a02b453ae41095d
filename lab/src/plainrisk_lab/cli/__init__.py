"""The commands that the lab adds to `plainrisk`: `study` and `compare`."""
