"""The small files of an artifact: tokenizer, chat template, generation_config.json.

In: the folders of model and adapters. Out: the files by rule (`carry`), mended where the end of a turn would not end
generation, and what was found. Nothing heavier than jinja2 is loaded.
"""
