"""Fixtures of the rooms that share some: one conftest, since two of one name confuse type checkers."""

import signal

from hypothesis import settings

pytest_plugins = ["apply_fixtures", "build_fixtures", "engine_fixtures"]

# a shell that starts the tests in the background has SIGINT ignored, and every process of ours would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# no test says how fast a machine has to be: tests/bench/ has ratios
settings.register_profile("deployc", deadline=None)
settings.load_profile("deployc")
