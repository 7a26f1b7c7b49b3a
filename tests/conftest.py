"""Fixtures of the rooms that share some: one conftest, since two of one name confuse type checkers."""

import signal

pytest_plugins = ["apply_fixtures", "build_fixtures", "engine_fixtures"]

# a shell that starts the tests in the background has SIGINT ignored, and every process of ours would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
