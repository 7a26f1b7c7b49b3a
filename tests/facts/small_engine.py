"""A tiny source tree in the shape of vLLM's: enough of its parser and defaults for the catalogue's reader."""

from __future__ import annotations

from pathlib import Path

from deployc.facts.catalogue.source import Tree

FILES = {
    "vllm/envs.py": """
        environment_variables = {
            "VLLM_USE_V2_MODEL_RUNNER": lambda: maybe_convert_bool(os.getenv("VLLM_USE_V2_MODEL_RUNNER", None)),
            "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS":
                lambda: bool(int(os.getenv("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "1"))),
            "VLLM_MAIN_CUDA_VERSION": lambda: os.getenv("VLLM_MAIN_CUDA_VERSION", "").lower() or "13.0",
            "VLLM_LEVEL": env_with_choices("VLLM_LEVEL", "low", ["low", "high"]),
            "VLLM_PORT": get_vllm_port,
            "VLLM_ROOT": lambda: os.path.join(os.getenv("XDG_HOME", root()), os.getenv("VLLM_ROOT", "cache")),
            "VLLM_WAIT": lambda: float(os.environ.get("VLLM_WAIT", "0.5")),
        }
    """,
    "vllm/elsewhere.py": """
        import os
        os.environ["ONLY_SET"] = "1"
        name = os.environ["TAKEN"]
        given = "ASKED_FOR" in os.environ and "ABSENT" not in os.environ
        other = os.environ.get(name)
        later = os.environ.setdefault("PUT", "1")
    """,
    "vllm/config/__init__.py": """
        from vllm.config.compilation import CompilationConfig
        from vllm.config.speculative import SpeculativeConfig
        from vllm.config.cache import CacheConfig
        from .model import ModelConfig
        from .lora import LoRAConfig
    """,
    "vllm/config/compilation.py": """
        @config
        class CompilationConfig:
            mode: int = 3
            cudagraph_mode: str | None = None
            traced: set = field(default_factory=set, init=False)
            LEVELS: ClassVar[int] = 4
            _hidden: int = 0
    """,
    "vllm/config/utils.py": """
        def config(cls):
            return dataclass(cls, config=ConfigDict(extra="forbid"))
    """,
    "vllm/config/speculative.py": """
        @dataclass
        class SpeculativeConfig:
            method: str | None = None
            num_speculative_tokens: int = 0
    """,
    "vllm/config/lora.py": """
        from typing import Literal
        Ranks = Literal[64, 8]

        @config
        class LoRAConfig:
            max_lora_rank: int = 16

            def check(self):
                possible_max_ranks = (16, 8, 64)
    """,
    "vllm/config/quantization.py": """
        _ONLINE_SHORTHANDS = {"short": Online}
    """,
    "vllm/model_executor/layers/quantization/__init__.py": """
        from typing import Literal
        QuantizationMethods = Literal["fast", "either", "old", "plain", "short"]
        DEPRECATED_QUANTIZATION_METHODS = ["old"]

        def get_quantization_config(quantization: str):
            from vllm.config.quantization import _ONLINE_SHORTHANDS
            if current_platform.is_cuda():
                from .kinds import Fast as Here
                chosen: type = Here
            else:
                from .kinds import Base
                chosen = Base
            from .kinds import Fast, Old, Plain
            method_to_config: dict[str, type] = {
                "fast": Fast, "either": chosen, "old": Old, "plain": Plain, "online": Fast,
            }
            return method_to_config[quantization]
    """,
    "vllm/model_executor/layers/quantization/kinds.py": """
        class Base:
            @classmethod
            def get_min_capability(cls) -> int:
                return 80

        class Fast(Base):
            @classmethod
            def get_supported_act_dtypes(cls):
                return [torch.half, torch.bfloat16]

            @classmethod
            def get_min_capability(cls) -> int:
                if current_platform.is_rocm():
                    return 60
                return 75

        class Old(Base):
            pass

        class Plain:
            @classmethod
            def get_min_capability(cls) -> int:
                return -1

            def get_supported_act_dtypes(self):
                raise NotImplementedError
    """,
    "vllm/model_executor/models/registry.py": """
        _TEXT = {"OneForCausalLM": ("one", "One"), "TwoForCausalLM": ("two", "Two")}
        _MORE = {
            **{name: place for name, place in _TEXT.items() if place},
            "OldForCausalLM": ("transformers", "Backend"),
        }
        _VLLM_MODELS = {**_TEXT, **_MORE}
    """,
    "vllm/v1/attention/backends/registry.py": """
        class AttentionBackendEnum(Enum, metaclass=_Meta):
            FLASH_ATTN = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
            TRITON_ATTN = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
            CUSTOM = None
            def get_path(self): pass
    """,
    "vllm/model_executor/models/interfaces.py": """
        class SupportsLoRA(Protocol):
            pass
    """,
    "vllm/model_executor/models/one.py": """
        from .interfaces import SupportsLoRA

        class Shared(nn.Module, SupportsLoRA):
            pass

        class One(Shared):
            pass
    """,
    "vllm/model_executor/models/two.py": """
        class Two(nn.Module):
            pass
    """,
    "vllm/tool_parsers/__init__.py": """
        _TOOL_PARSERS_TO_REGISTER = {"plain": ("plain_parser", "Plain"), "other": ("other_parser", "Other")}
    """,
    "vllm/reasoning/__init__.py": """
        from .manager import ReasoningParserManager
        from .thinking import Thinking
    """,
    "vllm/reasoning/manager.py": """
        class ReasoningParserManager:
            pass
    """,
    "vllm/reasoning/thinking.py": """
        from .manager import ReasoningParserManager

        @ReasoningParserManager.register_module("thinks")
        class Thinking:
            pass
    """,
    "docs/features/quantization/gguf.md": """
        GGUF has moved: uv pip install vllm-gguf-plugin
    """,
    "setup.py": """
        version = get_vllm_version()
    """,
    "vllm/config/cache.py": """
        from typing import ClassVar, Literal
        from pydantic import Field
        FP8 = Literal["fp8", "fp8_e5m2"]
        CacheDType = Literal["auto", FP8]

        @config
        class CacheConfig:
            DEFAULT_BLOCK_SIZE: ClassVar[int] = 16
            gpu_memory_utilization: float = Field(default=0.9, gt=0)
            cache_dtype: CacheDType = "auto"
            enable_prefix_caching: bool = True
            cache_bytes: int | None = None
            calculate_kv_scales: bool = False
            '''Deprecated: this option will be removed. It has no effect.'''
    """,
    "vllm/config/model.py": """
        from typing import TYPE_CHECKING, Any, Literal
        if TYPE_CHECKING:
            from vllm.quantization import Methods
        else:
            Methods = str
        Size = Literal[64, 8, 32]

        class Backend(Enum):
            FAST = "fast"

        @dataclass
        class Inner:
            rank: int = 1

        class Options(dict[str, Inner]):
            pass

        @config
        class ModelConfig:
            model: str = "tiny"
            max_model_len: int = None
            dtype: Literal["half", "auto"] = "auto"
            names: str | list[str] | None = None
            parts: list[Literal["a", "b"]] | None = None
            overrides: dict[str, Any] = field(default_factory=dict)
            options: Options = Field(default_factory=Options)
            inner: Inner | None = None
            size: Size = 8
            method: Methods | None = None
            token: bool | str | None = None
            backend: Backend = Backend.FAST
            kind: Literal["x"] | str = "x"
    """,
    "vllm/config/vllm.py": """
        DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES = frozenset({"B", "A"})

        class VllmConfig:
            @property
            def use_v2_model_runner(self) -> bool:
                use_v2_model_runner = envs.VLLM_USE_V2_MODEL_RUNNER
                if use_v2_model_runner is not None:
                    return use_v2_model_runner
                if self.speculative_config is not None and self.speculative_config.method == "dspark":
                    return True
                if not self._is_default_v2_model_runner_model():
                    return False
                unsupported = self._get_v2_model_runner_unsupported_features()
                if unsupported:
                    logger.warning_once("V1")
                    return False
                return True

            def _is_default_v2_model_runner_model(self) -> bool:
                if model_config.runner_type != "generate":
                    return False
                listed = any(arch in DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES for arch in architectures)
                if getattr(model_config, "is_hybrid", False) and (not listed):
                    return False
                return listed or not model_config.is_moe

            def _get_v2_model_runner_unsupported_features(self):
                if speculative_config is not None:
                    if speculative_config.method in ("ngram", "suffix"):
                        unsupported.append("speculative method")
    """,
    "vllm/engine/arg_utils.py": """
        from vllm.config import CacheConfig, ModelConfig
        GOING = "--old-way is deprecated and has no effect. It will be removed."

        def _compute_kwargs(cls):
            if contains_type(type_hints, int):
                if name == "max_model_len":
                    kwargs[name]["type"] = human_readable_int_or_auto
                elif name in {"cache_bytes"}:
                    kwargs[name]["type"] = human_readable_int

        class EngineArgs:
            @staticmethod
            def add_cli_args(parser):
                model_kwargs = get_kwargs(ModelConfig)
                group = parser.add_argument_group(title="ModelConfig")
                if not ("serve" in sys.argv[1:] and "--help" in sys.argv[1:]):
                    group.add_argument("--model", **model_kwargs["model"])
                group.add_argument("--max-model-len", **model_kwargs["max_model_len"])
                for_dtype = model_kwargs["dtype"]
                for_dtype["type"] = lambda s: s.lower()
                group.add_argument("--dtype", "-t", **for_dtype)
                group.add_argument("--names", **model_kwargs["names"])
                group.add_argument("--parts", **model_kwargs["parts"])
                group.add_argument("--overrides", **model_kwargs["overrides"])
                group.add_argument("--options", **model_kwargs["options"])
                group.add_argument("--inner", **model_kwargs["inner"])
                group.add_argument("--size", **model_kwargs["size"])
                group.add_argument("--method", **model_kwargs["method"])
                group.add_argument("--token", **model_kwargs["token"])
                group.add_argument("--backend", **model_kwargs["backend"])
                model_kwargs["kind"]["choices"] = ["x"] + [p for p in permutations("ab")]
                group.add_argument("--kind", **model_kwargs["kind"])
                cache_kwargs = get_kwargs(CacheConfig)
                group.add_argument("--gpu-memory-utilization", "--device-memory-utilization",
                                   **cache_kwargs["gpu_memory_utilization"])
                group.add_argument("--kv-cache-dtype", **cache_kwargs["cache_dtype"])
                group.add_argument("--enable-prefix-caching",
                                   **{**cache_kwargs["enable_prefix_caching"], "default": None})
                group.add_argument("--cache-bytes", **cache_kwargs["cache_bytes"])
                group.add_argument("--calculate-kv-scales", **cache_kwargs["calculate_kv_scales"])
                parser.add_argument("--disable-log-stats", action="store_true", help="No statistics.")
                parser.add_argument("--shutdown-timeout", type=int, default=0)
                parser.add_argument("--old-way", action=argparse.BooleanOptionalAction, help=GOING)
                parser.add_argument("--going", deprecated=True, default=argparse.SUPPRESS)
                return parser

            def get_batch_defaults(cls, world_size):
                if device_memory >= 70 * GiB_bytes and "a100" not in device_name:
                    default_max_num_batched_tokens = {UsageContext.LLM_CLASS: 1, UsageContext.OPENAI_API_SERVER: 8192}
                    default_max_num_seqs = {UsageContext.OPENAI_API_SERVER: 1024}
                else:
                    default_max_num_batched_tokens = {UsageContext.OPENAI_API_SERVER: 2048}
                    default_max_num_seqs = {UsageContext.OPENAI_API_SERVER: 256}
                if current_platform.is_tpu():
                    chip = ""
                if current_platform.is_cpu():
                    default_max_num_batched_tokens = {UsageContext.OPENAI_API_SERVER: 4096 * world_size}
                    default_max_num_seqs = {UsageContext.OPENAI_API_SERVER: 128 * world_size}

        class AsyncEngineArgs(EngineArgs):
            enable_log_requests: bool = False

            @staticmethod
            def add_cli_args(parser, async_args_only=False):
                load_general_plugins()
                if not async_args_only:
                    parser = EngineArgs.add_cli_args(parser)
                parser.add_argument("--enable-log-requests", action=argparse.BooleanOptionalAction,
                                    default=AsyncEngineArgs.enable_log_requests)
                return parser
    """,
    "vllm/entrypoints/openai/cli_args.py": """
        from vllm.engine.arg_utils import AsyncEngineArgs

        @config
        class BaseFrontendArgs:
            lora_modules: list[LoRAModulePath] | None = None
            '''LoRA modules.'''

            @classmethod
            def _customize_cli_kwargs(cls, frontend_kwargs):
                frontend_kwargs["lora_modules"]["type"] = optional_type(str)
                return frontend_kwargs

            @classmethod
            def add_cli_args(cls, parser):
                frontend_kwargs = get_kwargs(cls)
                frontend_kwargs = cls._customize_cli_kwargs(frontend_kwargs)
                for key, value in frontend_kwargs.items():
                    extra_flags = value.pop("flags", [])
                    parser.add_argument(*extra_flags, f"--{key.replace('_', '-')}", **value)
                return parser

        @config
        class FrontendArgs(BaseFrontendArgs):
            port: int = 8000
            allowed_origins: list[str] = field(default_factory=lambda: ["*"])
            middleware: list[str] = field(default_factory=lambda: [])

            @classmethod
            def _customize_cli_kwargs(cls, frontend_kwargs):
                frontend_kwargs = super()._customize_cli_kwargs(frontend_kwargs)
                frontend_kwargs["allowed_origins"]["type"] = json.loads
                del frontend_kwargs["allowed_origins"]["nargs"]
                frontend_kwargs["middleware"]["action"] = "append"
                if "nargs" in frontend_kwargs["middleware"]:
                    del frontend_kwargs["middleware"]["nargs"]
                return frontend_kwargs

        def make_arg_parser(parser):
            parser.add_argument("model_tag", type=str, nargs="?")
            parser.add_argument("--api-server-count", "-asc", type=int, default=None)
            parser = FrontendArgs.add_cli_args(parser)
            parser = AsyncEngineArgs.add_cli_args(parser)
            return parser
    """,
    "vllm/entrypoints/cli/serve.py": """
        from vllm.entrypoints.openai.cli_args import make_arg_parser

        class ServeSubcommand:
            def subparser_init(self, subparsers):
                serve_parser = subparsers.add_parser(self.name, description=DESCRIPTION)
                serve_parser = make_arg_parser(serve_parser)
                serve_parser.add_argument("--grpc", action="store_true", default=False)
                return serve_parser
    """,
    "vllm/v1/worker/gpu_worker.py": """
        class Worker:
            def determine_available_memory(self):
                available = self.requested_memory - profile.non_kv_cache_memory - cudagraph_memory_estimate_applied
    """,
    "vllm/v1/worker/gpu_model_runner.py": """
        class GPUModelRunner:
            def profile_cudagraph_memory(self) -> int:
                free = get_memory_info()
                return free
    """,
    "vllm/v1/worker/gpu/model_runner.py": """
        class GPUModelRunner:
            def profile_cudagraph_memory(self) -> int:
                return 0
    """,
    "vllm/v1/worker/cpu_worker.py": """
        class CPUWorker:
            def determine_available_memory(self):
                size = int(self.requested_cpu_memory - consumed_memory)
    """,
    "vllm/platforms/cuda.py": """
        class CudaPlatformBase:
            def check_and_update_config(cls, vllm_config):
                if cache_config and cache_config.block_size is None:
                    cache_config.block_size = 32
    """,
    "vllm/platforms/cpu.py": """
        class CpuPlatform:
            @property
            def supported_dtypes(self):
                return [torch.bfloat16, torch.float32]

            def check_and_update_config(cls, vllm_config):
                if not cache_config.user_specified_block_size:
                    cache_config.block_size = 64
                cache_config.kv_cache_memory_bytes = kv_cache_space * GiB_bytes
    """,
    "vllm/transformers_utils/config.py": """
        def patch_rope_parameters(config):
            config.rope_parameters = {}
    """,
    "docker/Dockerfile": """
        ARG CUDA_VERSION=13.0.2
        FROM a AS base
        ARG torch_cuda_arch_list='7.5 9.0+PTX'
        # Enable it by setting '-e VLLM_ENABLE_CUDA_COMPATIBILITY=1'
        ENV VLLM_ENABLE_CUDA_COMPATIBILITY=0
        FROM base AS vllm-sagemaker
        ENTRYPOINT ["./other.sh"]
        FROM base AS vllm-openai
        RUN true
        ENTRYPOINT ["vllm", "serve"]
    """,
}


def small_engine(folder: Path, **changed: tuple[str, str]) -> Tree:
    """The tree under `folder`; `changed` maps a file's stem (without dots) to a text in it and what stands there."""
    for path, text in FILES.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [line.removeprefix(" " * 8) for line in text.strip("\n").splitlines()]
        whole = "\n".join(lines) + "\n"
        if change := changed.get(place.stem):
            assert change[0] in whole, f"{path} has no {change[0]!r}"
            whole = whole.replace(*change)
        place.write_text(whole)
    return Tree(folder)
