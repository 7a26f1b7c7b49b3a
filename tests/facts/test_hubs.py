"""Both hubs over real HTTP, with the real huggingface_hub: what is read, what is not, and every way to fail."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest
from alone import be_patient, stand_alone
from loopback import COMMIT, Cdn, HubServer, ModelScopeServer, Reply, Server, html, serving
from small_models import CONFIG, adapter_files, deploy, model_files

from deployc.diagnostics import Report
from deployc.facts import resolve
from deployc.types.facts import Facts

TOKEN = "hf_secret_0123456789"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch)


def ask(server: Server, *, env: Mapping[str, str] | None = None, **model: Any) -> tuple[Facts | None, Report]:
    hub = "modelscope" if isinstance(server, ModelScopeServer) else "huggingface"
    source = model.pop("source", "org/small")
    adapters = model.pop("adapters", ())
    values = {"hub": hub, "endpoint": server.url} | model
    return resolve(deploy(source, adapters=adapters, **values), lock_path=None, offline=False, env=env or {})


def facts(server: Server, **model: Any) -> Facts:
    found, report = ask(server, **model)
    assert found is not None, [d.detail for d in report]
    return found


def fault(server: Server, code: str, **model: Any) -> str:
    """The text of the one error, which is of `code`, names the server and holds no token."""
    found, report = ask(server, **model)
    assert found is None
    (wrong,) = report.errors
    text = f"{wrong.detail} {wrong.fix}"
    assert wrong.code == code, text
    assert TOKEN not in text
    assert wrong.fix
    return text


KINDS = pytest.mark.parametrize("kind", [HubServer, ModelScopeServer])


@KINDS
@pytest.mark.parametrize("shards", [1, 3])
def test_facts_and_never_a_byte_of_weights(kind: type[HubServer | ModelScopeServer], shards: int) -> None:
    files = model_files(shards=shards)
    server = kind({"org/small": files})
    with serving(server):
        model = facts(server).model
    assert model.revision == COMMIT
    assert model.weights_basis == "header"
    assert model.chat_template
    assert model.generation_config == {"temperature": 0.7}
    weights = {name: body for name, body in files.items() if name.endswith(".safetensors")}
    assert model.parameters == sum(len(b) - 8 - int.from_bytes(b[:8], "little") for b in weights.values()) / 2
    for name, body in weights.items():
        assert model.files[name].startswith("sha256:")
        assert server.sent_of(name) == 8 + int.from_bytes(body[:8], "little")
    assert "README.md" not in model.files
    assert server.sent_of("tokenizer.json") == server.sent_of("README.md") == 0


@KINDS
def test_an_adapter_of_the_hub(kind: type[HubServer | ModelScopeServer]) -> None:
    server = kind({"org/small": model_files(), "me/qa": adapter_files()})
    with serving(server):
        (adapter,) = facts(server, adapters=["me/qa"]).adapters
    assert (adapter.rank, adapter.base, adapter.revision) == (8, "org/small", COMMIT)
    assert adapter.target_modules == ("q_proj", "v_proj")


@KINDS
def test_revisions(kind: type[HubServer | ModelScopeServer]) -> None:
    server = kind({"org/small": model_files()})
    with serving(server):
        assert facts(server, revision="v1").model.revision == COMMIT
        assert facts(server, revision=COMMIT).model.revision == COMMIT
        text = fault(server, "DC213", revision="v2")
        assert "v2" in text
        assert isinstance(server, HubServer) or "master, v1" in text
        assert "'../x'" in fault(server, "DC213", revision="../x")


@KINDS
def test_missing_repository_and_missing_file(kind: type[HubServer | ModelScopeServer]) -> None:
    files = model_files()
    del files["config.json"]
    server = kind({"org/small": files})
    with serving(server):
        assert "org/other" in fault(server, "DC212", source="org/other")
        assert "config.json" in fault(server, "DC202")


@KINDS
def test_a_file_that_is_gone_between_listing_and_reading(kind: type[HubServer | ModelScopeServer]) -> None:
    server = kind({"org/small": model_files()})
    with serving(server):
        server.faults["model.safetensors"] = [Reply(404, headers={"X-Error-Code": "EntryNotFound"})]
        assert "model.safetensors" in fault(server, "DC202")


def test_gated() -> None:
    server = HubServer({"org/small": model_files()}, token=TOKEN)
    server.gated = True
    with serving(server):
        text = fault(server, "DC211")
        assert "gated" in text
        assert "no token was sent" in text
        assert "not enough" in fault(server, "DC211", env={"HF_TOKEN": "hf_other"})
        model = facts(server, env={"HF_TOKEN": TOKEN}).model
    assert (model.revision, model.gated) == (COMMIT, True)


def test_private() -> None:
    server = HubServer({"org/small": model_files()}, token=TOKEN)
    with serving(server):
        assert "private" in fault(server, "DC212")
        assert facts(server, env={"HF_TOKEN": TOKEN})
    scope = ModelScopeServer({"org/small": model_files()}, token=TOKEN)
    with serving(scope):
        assert "403" in fault(scope, "DC211")
        assert fault(scope, "DC211", env={"HF_TOKEN": TOKEN})  # one hub's token goes to no other hub
        assert facts(scope, env={"MODELSCOPE_API_TOKEN": TOKEN})
    assert all(TOKEN not in str(s.headers) for s in scope.seen[:2])


def test_a_redirect_to_another_host_carries_no_token() -> None:
    cdn = Cdn()
    server = HubServer({"org/small": model_files(shards=2)}, token=TOKEN, cdn=cdn)
    with serving(server, cdn):
        assert facts(server, env={"HF_TOKEN": TOKEN}).model.weights_basis == "header"
    assert len(cdn.seen) == 4  # length and header of each shard
    assert all("authorization" not in s.headers and "cookie" not in s.headers for s in cdn.seen)
    assert all(s.headers["authorization"] == f"Bearer {TOKEN}" for s in server.seen)


def test_a_mirror_that_lists_names_only() -> None:
    cdn = Cdn()
    plain, mirror = HubServer({"org/small": model_files()}), HubServer({"org/small": model_files()}, cdn=cdn)
    mirror.names_only = True
    with serving(plain, mirror, cdn):
        assert facts(mirror).model == facts(plain).model
        mirror.faults["model.safetensors"] = [Reply(500)] * 3
        assert "500" in fault(mirror, "DC217")
        mirror.faults["model.safetensors"] = [Reply(404, headers={"X-Error-Code": "EntryNotFound"})]
        assert "model.safetensors" in fault(mirror, "DC202")


def test_cookies_are_not_taken() -> None:
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["config.json"] = [Reply(503, headers={"Set-Cookie": "session=abc; Path=/"})]
        assert facts(server)
    assert [s.headers.get("cookie") for s in server.seen if "/resolve/" in s.path] == [None] * 6


def test_a_redirect_to_elsewhere_and_without_end() -> None:
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["config.json"] = [Reply(302, headers={"Location": "file:///etc/passwd"})]
        assert "file://" in fault(server, "DC219")
        server.faults["config.json"] = [Reply(302, headers={"Location": "/org/small/resolve/x/config.json"})] * 9
        assert "more than 5" in fault(server, "DC219")


@KINDS
@pytest.mark.parametrize("where", ["models/org/small", "config.json", "model.safetensors"])
def test_busy_once_is_asked_again_busy_always_is_said(kind: type[HubServer | ModelScopeServer], where: str) -> None:
    server = kind({"org/small": model_files()})
    with serving(server):
        server.faults[where] = [Reply(500), Reply(429)]
        assert facts(server)
        server.faults[where] = [Reply(503)] * 3
        assert "503" in fault(server, "DC217")
        server.faults[where] = [Reply(429)] * 3
        assert "429" in fault(server, "DC217")


@KINDS
@pytest.mark.parametrize("where", ["models/org/small", "model.safetensors"])
def test_slow(kind: type[HubServer | ModelScopeServer], where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, timeout=0.2, whole=0.4)
    server = kind({"org/small": model_files()})
    with serving(server):
        server.faults[where] = [Reply(delay=0.35)] * 3
        assert "0.2 s" in fault(server, "DC215")


def test_a_trickle_is_too_slow_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, timeout=0.2, whole=0.4)
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["config.json"] = [Reply(body=b" " * 40, trickle=0.1)] * 3
        assert "0.4 s" in fault(server, "DC215")


@KINDS
@pytest.mark.parametrize("where", ["config.json", "model.safetensors"])
def test_cut_off(kind: type[HubServer | ModelScopeServer], where: str) -> None:
    server = kind({"org/small": model_files()})
    with serving(server):
        server.faults[where] = [Reply(206, bytes(8), cut=3)]
        assert facts(server)  # once only: the next attempt is whole
        server.faults[where] = [Reply(206, bytes(8), cut=3)] * 3
        assert where in fault(server, "DC216")


def test_a_listing_cut_off() -> None:
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["api/models"] = [Reply(200, b'{"sha": "0123', cut=5)] * 3
        assert "listing" in fault(server, "DC216")


@KINDS
@pytest.mark.parametrize("where", ["models/org/small", "config.json", "model.safetensors"])
def test_a_login_page_in_place_of_the_answer(kind: type[HubServer | ModelScopeServer], where: str) -> None:
    server = kind({"org/small": model_files()})
    with serving(server):
        server.faults[where] = [html()]
        fault(server, "DC219")


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"sha": 1, "siblings": null}', b'{"id": "org/small", "sha": null}'])
def test_json_that_is_no_listing(body: bytes) -> None:
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["api/models"] = [Reply(200, body, {"Content-Type": "application/json"})]
        fault(server, "DC219")
    scope = ModelScopeServer({"org/small": model_files()})
    with serving(scope):
        scope.faults["commits"] = [Reply(200, body, {"Content-Type": "application/json"})]
        assert ask(scope)[1].errors[0].code in ("DC217", "DC219")


def test_a_server_that_ignores_ranges() -> None:
    files = model_files()
    server = HubServer({"org/small": files})
    with serving(server):
        server.faults["model.safetensors"] = [Reply(200, files["model.safetensors"])] * 2
        assert facts(server).model.weights_basis == "header"


def test_a_shorter_file_than_listed() -> None:
    server = HubServer({"org/small": model_files()})
    with serving(server):
        server.faults["model.safetensors"] = [Reply(416)]
        assert "truncated" in fault(server, "DC204")


@KINDS
def test_nobody_listens(kind: type[HubServer | ModelScopeServer]) -> None:
    server = kind({})
    address = server.url
    server.server_close()
    found, report = ask(server, endpoint=address)
    assert found is None
    assert [d.code for d in report.errors] == ["DC218"]
    assert address.removeprefix("http://") in report.errors[0].detail


def test_a_name_that_no_one_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    server = HubServer({})
    server.server_close()
    assert "hub.invalid" in fault(server, "DC218", endpoint="http://hub.invalid")


def test_both_model_and_adapter_are_told_of_at_once() -> None:
    server = HubServer({"org/bad": {"config.json": b"{"}})
    with serving(server):
        found, report = ask(server, source="org/bad", adapters=["me/none"])
    assert found is None
    assert sorted(d.code for d in report.errors) == ["DC203", "DC212"]


def test_without_weights_the_shapes_are_derived_and_that_is_said() -> None:
    files = {n: b for n, b in model_files().items() if n != "model.safetensors"}
    server = HubServer({"org/small": files})
    with serving(server):
        found, report = ask(server)
    assert found is not None
    assert found.model.weights_basis == "architecture"
    assert [d.code for d in report] == ["DC207"]
    assert found.model.architecture.vocab_size == CONFIG["vocab_size"]
