"""One module a family, each with its list `SCENARIOS`."""
