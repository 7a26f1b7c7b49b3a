"""Fixtures of the rooms that share some: one conftest, since two of one name confuse type checkers."""

pytest_plugins = ["apply_fixtures", "build_fixtures", "engine_fixtures"]
