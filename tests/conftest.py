"""Fixtures of the rooms that share some: one conftest, since two of one name confuse type checkers."""

import signal

import pytest
from hypothesis import settings

pytest_plugins = ["apply_fixtures", "build_fixtures", "engine_fixtures"]

# a shell that starts the tests in the background has SIGINT ignored, and every process of ours would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# no test says how fast a machine has to be: tests/bench/ has ratios
settings.register_profile("deployc", deadline=None)
settings.load_profile("deployc")


@pytest.hookimpl(tryfirst=True)
def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their length: made at import, they may hold the time of day, and xdist's processes, which
    collect the same tests at different moments, have to agree on their names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) else None
