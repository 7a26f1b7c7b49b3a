"""One module a command; the only place that prints or exits.

In: the command line. Out: text on standard output, progress and errors on standard error, an exit code.
"""

import gc
import os

# A command makes some hundred thousand objects while it imports and throws none away: collecting meanwhile costs 7 % of
# a plan. Commands that live on (apply, logs) still collect, less often.
gc.set_threshold(500_000)

# pydantic would look through every installed distribution for plugins, at each start; our models need none
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
