"""What a source and an endpoint may be written as, and where the address comes from."""

from __future__ import annotations

import pytest
from alone import stand_alone
from loopback import HubServer, ModelScopeServer, serving
from small_models import model_files
from test_hubs import facts, fault

from deployc.facts import web
from deployc.facts.faults import Fault


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch)


@pytest.mark.parametrize(
    "endpoint",
    ["ftp://hub", "hub.example", "https://user:pw@hub", "https://hub?x=1", "https://", "https://h:x", "http://a b"],
)
def test_endpoints_that_cannot_be_used(endpoint: str) -> None:
    server = HubServer({})
    server.server_close()
    assert "pw" not in fault(server, "DC224", endpoint=endpoint)


@pytest.mark.parametrize(
    "source",
    ["../x/y/z", "a/b/c", "gpt2", "a/../b", "a\\b/c", "a/b?x", "a/b#c", "-a/b", "a//b", "a/b.git", "a/b c", "", "a/.."],
)
def test_sources_that_are_no_hub_id(source: str) -> None:
    server = HubServer({})
    server.server_close()
    assert fault(server, "DC201" if source.startswith("../") else "DC200", source=source)


def test_the_endpoint_comes_from_the_environment_too() -> None:
    server, scope = HubServer({"org/small": model_files()}), ModelScopeServer({"org/small": model_files()})
    with serving(server, scope):
        assert facts(server, endpoint=None, env={"HF_ENDPOINT": server.url + "/"})
        assert facts(scope, endpoint=None, env={"MODELSCOPE_ENDPOINT": scope.url})
        assert facts(scope, endpoint=None, env={"MODELSCOPE_DOMAIN": scope.url})


def test_the_time_that_the_environment_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert web.patience({}) == web.Patience()
    assert web.patience({"DEPLOYC_HUB_TIMEOUT": "60"}).timeout == 60.0
    for wrong in ("fast", "-1", "0", "nan", "inf"):
        with pytest.raises(Fault, match="DC224"):
            web.patience({"DEPLOYC_HUB_TIMEOUT": wrong})
