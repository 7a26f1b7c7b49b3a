"""IMPORT: what people already run is read, judged, and written as a deploy.yaml.

In: a command line, a file or a snippet of others, as text; nothing of it is ever executed. Out: `Imported`, the
deploy.yaml's text and a `Report` with places in what was read.
"""
