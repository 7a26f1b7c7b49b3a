"""BUILD: merge LoRA adapters into a model, quantize it, keep it in a content-addressed store.

In: `Recipe`. Out: `Artifact`, a folder `<store>/<recipe.key>/` that an engine loads. torch runs in a process apart.
"""
