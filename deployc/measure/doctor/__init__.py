"""DOCTOR: what a user says of a slow or failing server, beside what the cost model predicts of it.

In: a description (model, card, settings, what was seen) and the facts of its model and card. Out: a `Diagnosis`:
figures that contradict themselves, causes ranked by what each would give back, and what could not be seen.
"""
