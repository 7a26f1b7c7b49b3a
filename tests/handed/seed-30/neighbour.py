import uuid

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from vllm import AsyncEngineArgs, AsyncLLMEngine, SamplingParams

app = FastAPI()

engine_args = {"model": "Qwen/Qwen2.5-7B-Instruct", "dtype": "half", "max_model_len": 32768}
engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**engine_args))


@app.post("/generate")
async def generate(request: Request):
    body = await request.json()
    sampling = SamplingParams(temperature=0.7, max_tokens=8192)

    async def stream():
        sent = 0
        async for output in engine.generate(body["prompt"], sampling, request_id=str(uuid.uuid4())):
            text = output.outputs[0].text
            new, sent = text[sent:], len(text)
            yield f"data: {new}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000)
