"""Text of others -> `FoundLaunch`es with the place of each piece: one module a kind of text, all pure.

In: text and the name it is shown under. Out: launches, or nothing where it is none; never an exception for odd input.
"""
