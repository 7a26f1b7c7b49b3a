"""Puts this folder on the import path, so that tests of several rooms share `handmade`."""
