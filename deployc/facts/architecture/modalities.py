"""Models with several modalities: where config.json has the language model, and which encoders stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployc.facts import faults
from deployc.facts.architecture import towers
from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.towers import Tokens, tower
from deployc.types.architecture import Tower
from deployc.types.config import Config


@dataclass(frozen=True, slots=True)
class Whole:
    """One model_type. `text` is the language model's model_type where its object names none."""

    name: str  # its class in `architectures`
    text: str
    vision: str = ""  # model_type of the class of `vision_config`; "" = it has none
    audio: str = ""
    image_tokens: Tokens = towers.unknown
    audio_tokens: Tokens = towers.unknown
    key: str = "text_config"
    flat: bool = False  # older files have the language model's keys at the top

    def towers(self, config: Config, preprocessor: Config) -> tuple[Tower, ...]:
        """Raises Fault DC210."""
        keys = Keys(config)
        found = (
            tower(keys, "vision_config", "vision", self.vision, self.image_tokens, preprocessor)
            if self.vision
            else None,
            tower(keys, "audio_config", "audio", self.audio, self.audio_tokens, preprocessor) if self.audio else None,
        )
        return tuple(one for one in found if one is not None)

    def language(self, config: Config) -> tuple[Config, str, str]:
        """The language model's object, its dotted path and its model_type. Raises Fault DC210."""
        values = config.get(self.key)
        if values is None and self.flat:
            return config, "", self.text
        if not isinstance(values, dict):
            why = "it is not there." if values is None else f"an object is expected, not {values!r:.60}."
            raise faults.bad_dimension(self.key, why)
        named = values.get("model_type", self.text)
        if named == config["model_type"]:  # older files repeat the whole's name
            named = self.text
        if not isinstance(named, str):
            raise faults.bad_dimension(f"{self.key}.model_type", f"a name is expected, not {named!r:.60}.")
        return values, f"{self.key}.", named


_SIGLIP, _CLIP, _PIXTRAL = "siglip_vision_model", "clip_vision_model", "pixtral"

WHOLES: Mapping[str, Whole] = {
    "gemma3": Whole(
        "Gemma3ForConditionalGeneration", "gemma3_text", _SIGLIP, image_tokens=towers.named("mm_tokens_per_image", 256)
    ),
    "gemma3n": Whole(
        "Gemma3nForConditionalGeneration",
        "gemma3n_text",
        "gemma3n_vision",
        "gemma3n_audio",
        towers.named("vision_soft_tokens_per_image", 256),
        towers.named("audio_soft_tokens_per_image", 188),
    ),
    "gemma4": Whole(
        "Gemma4ForConditionalGeneration",
        "gemma4_text",
        "gemma4_vision",
        "gemma4_audio",
        towers.pooled,
    ),
    "mistral3": Whole("Mistral3ForConditionalGeneration", "mistral", _PIXTRAL, image_tokens=towers.merged),
    "llava": Whole("LlavaForConditionalGeneration", "llama", _CLIP, image_tokens=towers.patches),
    "llava_next": Whole("LlavaNextForConditionalGeneration", "llama", _CLIP, image_tokens=towers.tiles),
    "llava_onevision": Whole("LlavaOnevisionForConditionalGeneration", "qwen2", _SIGLIP),
    "qwen2_vl": Whole(
        "Qwen2VLForConditionalGeneration", "qwen2_vl_text", "qwen2_vl_vision", image_tokens=towers.pixels, flat=True
    ),
    "qwen2_5_vl": Whole(
        "Qwen2_5_VLForConditionalGeneration",
        "qwen2_5_vl_text",
        "qwen2_5_vl_vision",
        image_tokens=towers.pixels,
        flat=True,
    ),
    "qwen3_vl": Whole(
        "Qwen3VLForConditionalGeneration", "qwen3_vl_text", "qwen3_vl_vision", image_tokens=towers.pixels
    ),
    "qwen3_vl_moe": Whole(
        "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", "qwen3_vl_moe_vision", image_tokens=towers.pixels
    ),
    "qwen3_5": Whole("Qwen3_5ForConditionalGeneration", "qwen3_5_text", "qwen3_5_vision", image_tokens=towers.pixels),
    "qwen3_5_moe": Whole(
        "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", "qwen3_5_moe_vision", image_tokens=towers.pixels
    ),
    "glm4v": Whole("Glm4vForConditionalGeneration", "glm4v_text", "glm4v_vision", image_tokens=towers.pixels),
    "glm4v_moe": Whole(
        "Glm4vMoeForConditionalGeneration", "glm4v_moe_text", "glm4v_moe_vision", image_tokens=towers.pixels
    ),
    "paligemma": Whole("PaliGemmaForConditionalGeneration", "gemma", _SIGLIP, image_tokens=towers.patches),
    "lfm2_vl": Whole("Lfm2VlForConditionalGeneration", "lfm2", "siglip2_vision_model"),
    "cohere2_vision": Whole("Cohere2VisionForConditionalGeneration", "cohere2", _SIGLIP),
    "llama4": Whole("Llama4ForConditionalGeneration", "llama4_text", "llama4_vision_model", image_tokens=towers.llama4),
    "internvl": Whole("InternVLForConditionalGeneration", "qwen2", "internvl_vision", image_tokens=towers.internvl),
    "internvl_chat": Whole(
        "InternVLChatModel", "qwen2", "intern_vit_6b", image_tokens=towers.internvl_chat, key="llm_config"
    ),
    "idefics3": Whole("Idefics3ForConditionalGeneration", "llama", "idefics3_vision"),
    "smolvlm": Whole("SmolVLMForConditionalGeneration", "llama", "smolvlm_vision"),
    "aya_vision": Whole("AyaVisionForConditionalGeneration", "cohere2", _SIGLIP),
    "qwen2_audio": Whole(
        "Qwen2AudioForConditionalGeneration", "qwen2", audio="qwen2_audio_encoder", audio_tokens=towers.halved
    ),
    "voxtral": Whole("VoxtralForConditionalGeneration", "llama", audio="voxtral_encoder"),
}
