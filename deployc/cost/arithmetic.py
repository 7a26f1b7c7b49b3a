"""What share of the cards' arithmetic the prompts of a load take, however well it is used."""

from __future__ import annotations

from deployc.cost.request import mean_request
from deployc.cost.speed_basis import speed_basis
from deployc.cost.step import shape
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.explanation import Arithmetic
from deployc.types.facts import Facts
from deployc.types.figure import Figure, exact
from deployc.types.prediction import Prediction


def prompt_arithmetic(deploy: Deploy, facts: Facts, choices: Choices, prediction: Prediction) -> Arithmetic | None:
    """Two operations a weight and token, attention beside them not counted; None where the card's peak is not known.

    At the stated rate, or at the one that is predicted for so many in flight.
    """
    if not facts.smallest.flops or facts.smallest.name == "cpu":
        return None
    of = shape(facts, choices, speed_basis(facts, choices).peaks)
    weights = float(sum(product.weights for product in of.products))
    if of.experts is not None:
        weights += of.experts.weights * of.experts.layers * of.experts.per_token
    asked, speed = deploy.workload.request_rate, prediction.speed
    rate = exact(asked, "1/s") if asked is not None else speed.requests_per_second
    tokens = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value).uncached_tokens
    each = tokens * 2 * weights / choices.replicas.value  # of one rank: its share of the weights
    ranks = of.tensor_parallel_size
    needed = Figure(rate.value * each, rate.low * each, rate.high * each, "FLOP/s", rate.basis)
    return Arithmetic(rate, tokens, weights * ranks, ranks * choices.replicas.value, needed, of.kernel_peak)
