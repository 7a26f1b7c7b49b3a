"""Code around an engine: what is wrong with it is said, and the same thing done right is not."""

from __future__ import annotations

import pytest

from deployc.adopt.imported import imported

HEAD = """\
import uuid
import json
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from vllm import LLM, AsyncEngineArgs, AsyncLLMEngine, SamplingParams
app = FastAPI()
"""


def said(body: str, head: str = HEAD) -> set[str]:
    return {d.code for d in imported(head + body, "server.py").report if d.code >= "DC730"}


STREAM = """
async def stream(prompt):
    async for output in engine.generate(prompt, params, {id}):
        {loop}
"""


@pytest.mark.parametrize(
    ("given", "wrong"),
    [("'xxx'", True), ("request_id='fixed'", True), ("NAME", True), ("str(uuid.uuid4())", False), ("f'r-{n}'", False)],
)
def test_ids_of_requests(given: str, wrong: bool) -> None:
    body = "NAME = 'always'\n@app.get('/s')\ndef s():\n    return stream('a')\n" + STREAM.format(
        id=given, loop="yield output.outputs[0].text[n:]"
    )
    assert ("DC730" in said(body)) is wrong


def test_one_request_of_a_script_needs_no_other_id() -> None:
    assert "DC730" not in said(STREAM.format(id="'xxx'", loop="pass"))
    assert said("results = engine.generate('a', params, 'only')\n") == set()


@pytest.mark.parametrize(
    ("loop", "wrong"),
    [
        ("yield output.outputs[0].text", True),
        ("text = output.outputs[0].text; yield f'data: {text}\\n\\n'", True),
        ("yield json.dumps({'text': [o.text for o in output.outputs]})", True),
        ("answer = output.outputs[0].text; chunk = {'t': answer}; yield json.dumps(chunk)", True),
        ("yield output.outputs[0].text[len(sent):]", False),
        ("text = output.outputs[0].text; delta = text[n:]; n = len(text); yield delta", False),
        ("last = output", False),
    ],
)
def test_chunks_hold_what_is_new(loop: str, wrong: bool) -> None:
    assert ("DC731" in said(STREAM.format(id="str(uuid.uuid4())", loop=loop))) is wrong


def test_deltas_are_new_by_themselves() -> None:
    body = "params = SamplingParams(output_kind=RequestOutputKind.DELTA)\n"
    assert "DC731" not in said(body + STREAM.format(id="str(uuid.uuid4())", loop="yield output.outputs[0].text"))


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("StreamingResponse(stream())", True),
        ("StreamingResponse(stream(), media_type='text/plain')", True),
        ("StreamingResponse(stream(), media_type='text/event-stream; charset=utf-8')", False),
        ("StreamingResponse(stream(), media_type='application/x-ndjson')", False),
        ("StreamingResponse(stream(), media_type=kind)", False),
    ],
)
def test_the_type_of_a_stream(call: str, wrong: bool) -> None:
    assert ("DC732" in said(f"def f():\n    return {call}\n")) is wrong


def test_names_that_nothing_imports() -> None:
    body = "def f():\n    return StreamingResponse(json.dumps(uuid.uuid4()), media_type='text/event-stream')\n"
    assert "DC733" in said(body, "from vllm import LLM\n")
    assert "DC733" not in said(body)
    assert "DC733" not in said(body, "from vllm import *\n")


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("AsyncLLMEngine.from_engine_args({'model': 'a/b'})", True),
        ("AsyncLLMEngine.from_engine_args(dict(model='a/b'))", True),
        ("AsyncLLMEngine.from_engine_args(settings)", True),
        ("AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**settings))", False),
        ("AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model='a/b'))", False),
    ],
)
def test_what_an_engine_is_made_from(call: str, wrong: bool) -> None:
    assert ("DC734" in said(f"settings = {{'model': 'a/b'}}\nengine = {call}\n")) is wrong


HANDLER = "@app.post('/g')\nasync def g(prompt: str):\n    {}\n"


def test_an_engine_for_each_request() -> None:
    assert "DC737" in said(HANDLER.format("return LLM('a/b').generate(prompt)"))
    assert "DC737" not in said("llm = LLM('a/b')\n" + HANDLER.format("return prompt"))


def test_a_synchronous_engine_in_an_event_loop() -> None:
    assert "DC736" in said("llm = LLM('a/b')\n" + HANDLER.format("return llm.generate(prompt)"))
    assert "DC736" not in said("llm = LLM('a/b')\n@app.post('/g')\ndef g(p: str):\n    return llm.generate(p)\n")
    assert "DC736" not in said("llm = LLM('a/b')\nprint(llm.generate('hello'))\n")


def test_a_tokenizer_for_each_request() -> None:
    head = HEAD + "from transformers import AutoTokenizer\n"
    assert "DC738" in said(HANDLER.format("return AutoTokenizer.from_pretrained('a/b')(prompt)"), head)
    assert "DC738" not in said("tokenizer = AutoTokenizer.from_pretrained('a/b')\n", head)


def test_a_server_for_everyone() -> None:
    run = "uvicorn.run(app, host='0.0.0.0')\n"
    assert "DC739" in said(run)
    assert "DC739" not in said(run.replace("0.0.0.0", "127.0.0.1"))
    assert "DC739" not in said("security = HTTPBearer()\n" + run)


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("new EventSource('/g', {method: 'POST', body: x})", True),
        ("new EventSource(`/g?${a}`, {\n  headers: {a: 'b'},\n})", True),
        ("new EventSource('/g', {withCredentials: true})", False),
        ("new EventSource('/g'); fetch('/g', {method: 'POST'})", False),
        ("// new EventSource('/g', {method: 'POST'})", False),
        ("/* new EventSource('/g', {method: 'POST'}) */", False),
    ],
)
def test_pages(script: str, wrong: bool) -> None:
    for name in ("client.js", "page.html"):
        assert ("DC735" in {d.code for d in imported(script, name).report}) is wrong


def test_code_that_has_nothing_to_do_with_vllm_is_left_alone() -> None:
    found = imported("uvicorn.run(app, host='0.0.0.0')\n", "other.py")
    assert [d.code for d in found.report] == ["DC700"] and found.exit_code == 3


def test_code_without_a_launch_is_read_all_the_same() -> None:
    assert imported(STREAM.format(id="str(uuid.uuid4())", loop="pass") + "# vllm", "server.py").exit_code == 0
