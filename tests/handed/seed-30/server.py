import uvicorn
from fastapi import FastAPI, Request
from vllm import AsyncLLMEngine, SamplingParams

app = FastAPI()

engine_args = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "tensor_parallel_size": 4,
    "dtype": "half",
    "max_model_len": 131072,
}
engine = AsyncLLMEngine.from_engine_args(engine_args)


@app.post("/generate")
async def generate(request: Request):
    body = await request.json()
    sampling = SamplingParams(temperature=0.7, max_tokens=8192)

    async def stream():
        results = engine.generate(body["prompt"], sampling, request_id="xxx")
        async for output in results:
            text = output.outputs[0].text
            yield text

    return StreamingResponse(stream(), media_type="text/plain")


if __name__ == "__main__":
    uvicorn.run(app, host="0.0.0.0", port=8000)
