"""Health of an endpoint that answers oddly, who holds a port, and who a process is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from apply_bench import SERVED, Bench, free_port

from deployc.apply import ports, process
from deployc.apply.health import Endpoint, Unhealthy, live, served_names, verify
from deployc.apply.identity import alive, identify, kill_session, send, session
from deployc.apply.observe import logs, status
from deployc.apply.state import read_run
from deployc.diagnostics import Stop


@contextmanager
def answering(answer: bytes) -> Iterator[Endpoint]:
    """A server that answers everything with the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield Endpoint("127.0.0.1", server.getsockname()[1], SERVED)
        server.shutdown(socket.SHUT_RDWR)


def http(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("answer", "said", "final"),
    [
        (http(b"<html>a login page</html>"), "no list of models", True),
        (http(b'{"data": "x"}'), "no list of models", True),
        (http(b"", b"401 Unauthorized"), "answers 401", True),
        (http(b'{"data": [{"id": "other"}]}'), "lists 'other', not 'stand-in'", True),
        (http(b'{"data": []}'), "lists no model", True),
        (http(b'{"data": [{"id": "stand-in"}]}'), "without a choice", True),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "GET http://127.0.0.1", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "GET http://127.0.0.1", False),
        (b"", "GET http://127.0.0.1", False),
    ],
)
def test_odd_answers_are_told(answer: bytes, said: str, final: bool) -> None:
    with answering(answer) as endpoint, pytest.raises(Unhealthy) as wrong:
        verify(endpoint, 2.0)
    assert said in str(wrong.value) and wrong.value.final is final


def test_nobody_listens_and_a_listener_that_never_answers() -> None:
    assert not live(Endpoint("127.0.0.1", free_port(), SERVED), 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = Endpoint("127.0.0.1", silent.getsockname()[1], SERVED)
        assert not live(endpoint, 0.2)
        with pytest.raises(Unhealthy, match="timed out"):
            served_names(endpoint, 0.2)


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with answering(http(b"")) as endpoint:
        assert live(endpoint)


def test_addresses_that_mean_every_address_are_reached_by_the_loopback() -> None:
    assert Endpoint("0.0.0.0", 1, "").url == "http://127.0.0.1:1"
    assert Endpoint("::", 1, "").url == "http://[::1]:1"
    assert Endpoint("192.0.2.1", 1, "").url == "http://192.0.2.1:1"


def test_who_holds_a_port() -> None:
    port = free_port()
    assert ports.bind_failure("127.0.0.1", port) is None and ports.holders(port) == []
    with socket.create_server(("127.0.0.1", port)):
        failure = ports.bind_failure("127.0.0.1", port)
        assert failure is not None and ports.in_use(failure)
        assert ports.holders(port) == [os.getpid()] and str(os.getpid()) in ports.describe(port)
        anywhere = ports.bind_failure("0.0.0.0", port)
        assert anywhere is not None and ports.in_use(anywhere)
    strange = ports.bind_failure("192.0.2.1", port)
    assert strange is not None and not ports.in_use(strange)


def test_who_a_process_is() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as child:
        me = identify(child.pid)
        assert me is not None and alive(me) and session(me) == [me]
        later = replace(me, start=me.start + 1)
        assert not alive(later) and session(later) == []
        assert not alive(replace(me, boot="another")) and session(replace(me, boot="another")) == []
        assert not send(later, signal.SIGKILL) and child.poll() is None
        kill_session(me)
        child.wait(5)
    assert not alive(me) and identify(child.pid) is None
    assert identify(os.getpid()) != me


def test_a_zombie_does_not_live() -> None:
    child = subprocess.Popen(["true"])
    me = identify(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identify(child.pid) is None and not alive(me)
    child.wait()


def test_logs_of_what_runs_and_of_what_ran(bench: Bench) -> None:
    with pytest.raises(Stop) as stop:
        logs(bench.state, lines=5, follow=False)
    assert [d.code for d in stop.value.report] == ["DC647"]
    bench.apply(bench.bundle(standin="bad-bytes"))
    shown = list(logs(bench.state, lines=100, follow=False))
    assert any("stand-in engine" in line for line in shown) and "100%" in shown
    assert not any(c < " " for line in shown for c in line)
    seen: list[str] = []
    follower = logs(bench.state, lines=1, follow=True)
    seen.append(next(follower))
    threading.Timer(0.3, process.stop, (bench.state,)).start()
    assert "stopped" in [*seen, *follower][-1], "following ends with the engine"


def test_an_engine_that_stops_answering_is_unhealthy(bench: Bench) -> None:
    bench.apply(bench.bundle())
    run = read_run(bench.state)
    assert run is not None and run.engine is not None
    send(run.engine, signal.SIGSTOP)
    seen = status(bench.state, timeout=0.2)
    send(run.engine, signal.SIGCONT)
    assert seen.condition == "unhealthy" and "0.2 s" in seen.reason and seen.log_tail
