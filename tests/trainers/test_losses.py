"""M3's losses by our settings, computed by TRL's own code, against M3's formulas."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from adp.trainers.config_methods import DpoSection
from adp.trainers.dpo import dpo_settings
from adp.trainers.losses import M3_LOSSES, M3_SETTINGS, from_m3, terms
from adp_schema.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

PAIRS, LENGTH, BETA = 5, 9, 0.3
REL = 1e-4
"""TRL computes in float32."""


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_sigmoid(x: Any) -> Any:
    return -np.logaddexp(0, -x)


def smoothed(x: Any, eps: float) -> Any:
    return -(1 - eps) * log_sigmoid(x) - eps * log_sigmoid(-x)


def m3_loss(name: str, logps: dict[str, Any], eps: float, gamma: float) -> float:
    """M3's formulas, as its trainers/dpo.py has them. The log-probabilities are (pairs,)."""
    c, r, rc, rr = (logps[key] for key in ("c", "r", "rc", "rr"))
    chosen, rejected = c - rc, r - rr
    z = chosen - rejected
    u, m = BETA * z, sigmoid(BETA * z / 0.05)
    if name == "exo_pair" and eps == 0:
        eps = 1e-3
    odds = (c - r) - (np.log1p(-np.exp(c)) - np.log1p(-np.exp(r)))
    formulas = {
        "sigmoid": lambda: smoothed(u, eps),
        "robust": lambda: (-(1 - eps) * log_sigmoid(u) + eps * log_sigmoid(-u)) / (1 - 2 * eps),
        "exo_pair": lambda: (
            sigmoid(u) * (log_sigmoid(u) - np.log(1 - eps))
            + sigmoid(-u) * (log_sigmoid(-u) - np.log(eps))
        ),
        "hinge": lambda: np.maximum(0, 1 - u),
        "ipo": lambda: (z - 1 / (2 * BETA)) ** 2,
        # Without the running mean, which is the difference that the table tells.
        "bco_pair": lambda: -log_sigmoid(BETA * chosen) - log_sigmoid(-BETA * rejected),
        "sppo_hard": lambda: (chosen - 0.5 / BETA) ** 2 + (rejected + 0.5 / BETA) ** 2,
        "nca_pair": lambda: (
            -log_sigmoid(BETA * chosen)
            - 0.5 * log_sigmoid(-BETA * chosen)
            - 0.5 * log_sigmoid(-BETA * rejected)
        ),
        "aot_pair": lambda: smoothed(BETA * (np.sort(chosen) - np.sort(rejected)), eps),
        "aot": lambda: smoothed(BETA * (np.sort(c - r) - np.sort(rc - rr)), eps),
        "apo_zero": lambda: 1 - sigmoid(BETA * chosen) + sigmoid(BETA * rejected),
        "apo_down": lambda: sigmoid(BETA * chosen) + 1 - sigmoid(u),
        "discopop": lambda: -log_sigmoid(u) * (1 - m) + np.exp(-u) * m,
        "orpo": lambda: -c + BETA * -log_sigmoid(odds),
        "simpo": lambda: -log_sigmoid(BETA * ((c - r) - gamma / BETA)),
    }
    return float(np.mean(formulas[name]()))


class Batch:
    """Random log-probabilities of tokens, with holes where results of tools stand."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        shape = (2 * PAIRS, LENGTH)
        self.mask = random.random(shape) < 0.6
        self.mask[:, 0] = False
        self.mask[:, 3] = True
        self.policy = -random.gamma(1.0, 1.0, (2 * PAIRS, LENGTH - 1)) * self.mask[:, 1:]
        self.reference = -random.gamma(1.0, 1.0, (2 * PAIRS, LENGTH - 1)) * self.mask[:, 1:]
        self.counts = self.mask[:, 1:].sum(axis=1)

    def sums(self, *, average: bool) -> dict[str, Any]:
        """The log-probabilities of the sides, as M3 takes them."""
        sums = {}
        for name, values in (("", self.policy), ("r", self.reference)):
            total = values.sum(axis=1) / (self.counts if average else 1)
            sums[name + "c"], sums[name + "r"] = total[:PAIRS], total[PAIRS:]
        return sums


def trl_loss(section: DpoSection, batch: Batch) -> float:
    """What TRL's trainer computes, on a model that gives these log-probabilities."""
    import torch

    from adp.trainers.trl_preference import ExactDPOTrainer, ReferenceFreeTrainer

    kind: Any = ReferenceFreeTrainer if section.is_reference_free else ExactDPOTrainer
    trainer = object.__new__(kind)
    settings = dpo_settings(section)

    def model(**_: Any) -> Any:
        zeros = torch.zeros(2 * PAIRS, LENGTH - 1)
        return SimpleNamespace(
            log_probs=torch.from_numpy(batch.policy).float(),
            entropy=zeros,
            mean_logits=zeros,
            is_top1=zeros.bool(),
        )

    def reference(**_: Any) -> Any:
        return SimpleNamespace(log_probs=torch.from_numpy(batch.reference).float())

    def same(value: Any) -> Any:
        return value

    ours = {
        "model": type("Model", (torch.nn.Module,), {"is_gradient_checkpointing": False})(),
        "ref_model": reference,
        "accelerator": SimpleNamespace(device="cpu", gather=same, gather_for_metrics=same),
        "args": SimpleNamespace(
            discopop_tau=section.discopop_tau, gradient_checkpointing_kwargs=None
        ),
        "loss_types": settings["loss_type"],
        "loss_weights": settings["loss_weights"],
        "simpo_gamma": section.simpo_gamma,
        "precompute_ref_logps": False,
        "aux_loss_enabled": False,
        "_metrics": {"train": defaultdict(list)},
        "_total_train_tokens": 0,
        "_tp_size": 1,
    }
    trainer.__dict__.update(ours)
    for name in ("beta", "ld_alpha", "f_divergence_type", "f_alpha_divergence_coef",
                 "label_smoothing", "use_weighting"):  # fmt: skip
        setattr(trainer, name, settings[name])
    ids = torch.zeros(2 * PAIRS, LENGTH, dtype=torch.long)
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "completion_mask": torch.from_numpy(batch.mask.astype(np.int64)),
    }
    return float(trainer._compute_loss(model, inputs, False))


@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("name", [loss.name for loss in M3_LOSSES])
def test_trl_computes_m3_s_loss(name, eps):
    asked = {"pref_loss": name, "pref_beta": BETA, "dpo_label_smoothing": eps, "simpo_gamma": 0.7}
    section = DpoSection.model_validate(from_m3(asked))
    for seed in range(3):
        batch = Batch(seed)
        logps = batch.sums(average=name in ("ipo", "orpo", "simpo"))
        assert trl_loss(section, batch) == pytest.approx(m3_loss(name, logps, eps, 0.7), rel=REL)


def test_without_the_combination_trl_would_ignore_the_smoothing_of_sigmoid():
    batch = Batch(0)
    plain = DpoSection.model_validate({"beta": BETA})
    smooth = DpoSection.model_validate({"beta": BETA, "label_smoothing": 0.1})
    assert terms(("sigmoid",), None, 0.1).loss_type == ("sigmoid", "robust")
    assert trl_loss(smooth, batch) != pytest.approx(trl_loss(plain, batch), rel=1e-3)
    # Beside another loss, its weight holds for the sum.
    both = {"loss_type": ["sigmoid", "hinge"], "loss_weights": [2, 3], "label_smoothing": 0.1}
    section = DpoSection.model_validate({"beta": BETA, **both})
    logps = batch.sums(average=False)
    expected = 2 * m3_loss("sigmoid", logps, 0.1, 0) + 3 * m3_loss("hinge", logps, 0, 0)
    assert trl_loss(section, batch) == pytest.approx(expected, rel=REL)


def test_bco_differs_by_the_running_mean():
    # One batch: M3's running mean is the mean of both rewards, and shifts both.
    batch = Batch(1)
    batch.reference[:, 2] -= 5.0
    logps = batch.sums(average=False)
    chosen = BETA * (logps["c"] - logps["rc"])
    rejected = BETA * (logps["r"] - logps["rr"])
    delta = np.concatenate([chosen, rejected]).mean()
    m3 = float(np.mean(-log_sigmoid(chosen - delta) - log_sigmoid(-(rejected - delta))))
    section = DpoSection.model_validate(from_m3({"pref_loss": "bco_pair", "pref_beta": BETA}))
    ours = trl_loss(section, batch)
    assert ours != pytest.approx(m3, rel=1e-3)
    assert "δ" in next(loss.difference for loss in M3_LOSSES if loss.name == "bco_pair")
    # That shift of both log-ratios is the whole difference.
    batch.reference[:, 2] += delta / BETA
    assert trl_loss(section, batch) == pytest.approx(m3, rel=REL)


@pytest.mark.parametrize("name", ["sigmoid", "orpo", "simpo"])
def test_the_sft_term(name):
    values = {"pref_loss": name, "pref_beta": BETA, "pref_ftx": 0.4, "simpo_gamma": 0.7}
    section = DpoSection.model_validate(from_m3(values))
    batch = Batch(2)
    per_side = batch.policy.sum(axis=1)[:PAIRS] / batch.counts[:PAIRS]
    over_all = batch.policy[:PAIRS].sum() / batch.counts[:PAIRS].sum()
    logps = batch.sums(average=name != "sigmoid")
    base = m3_loss(name, logps, 0, 0.7)
    m3 = base - 0.4 * per_side.mean()
    ours = trl_loss(section, batch)
    if name == "sigmoid":
        assert ours == pytest.approx(base - 0.4 * over_all, rel=REL)
        assert ours != pytest.approx(m3, rel=1e-4)
    else:
        assert ours == pytest.approx(m3, rel=REL)


def test_ld_alpha_weighs_the_rest_of_the_longer_side_in_both_models():
    batch = Batch(3)
    section = DpoSection.model_validate({"beta": BETA, "ld_alpha": 0.25})
    both, policy_only = {}, {}
    shared = np.minimum(batch.counts[:PAIRS], batch.counts[PAIRS:])
    shared = np.concatenate([shared, shared])
    place = batch.mask[:, 1:].cumsum(axis=1)
    weights = np.where(place <= shared[:, None], 1.0, 0.25)
    for key, values, m3_weights in (
        ("", batch.policy, weights),
        ("r", batch.reference, np.ones_like(weights)),
    ):
        for result, by in ((both, weights), (policy_only, m3_weights)):
            total = (values * by).sum(axis=1)
            result[key + "c"], result[key + "r"] = total[:PAIRS], total[PAIRS:]
    ours = trl_loss(section, batch)
    assert ours == pytest.approx(m3_loss("sigmoid", both, 0, 0), rel=REL)
    assert ours != pytest.approx(m3_loss("sigmoid", policy_only, 0, 0), rel=1e-4)
    assert any("ld_alpha" in row[0] for row in M3_SETTINGS)


@pytest.mark.parametrize(
    ("kind", "scores"),
    [
        ("forward_kl", lambda x: 1 - np.exp(-x)),
        ("js_divergence", lambda x: np.log(2) + log_sigmoid(x)),
        ("alpha_divergence", lambda x: (np.exp(-0.5 * x) - 1) / -0.5),
    ],
)
def test_other_divergences(kind, scores):
    batch = Batch(4)
    section = DpoSection.model_validate({"beta": BETA, "f_divergence_type": kind})
    logps = batch.sums(average=False)
    z = scores(logps["c"] - logps["rc"]) - scores(logps["r"] - logps["rr"])
    expected = np.mean(-log_sigmoid(BETA * z))
    assert trl_loss(section, batch) == pytest.approx(expected, rel=REL)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"loss_type": ["hinge"], "label_smoothing": 0.1}, "has no effect on hinge"),
        ({"loss_type": ["orpo", "sigmoid"]}, "orpo compares with no reference"),
        ({"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0]}, "1 weights for 2 losses"),
        ({"loss_type": ["aot"], "f_divergence_type": "js_divergence"}, "not defined for aot"),
        ({"loss_type": ["no_such"]}, "loss_type"),
        ({"label_smoothing": 0.5}, "label_smoothing"),
    ],
)
def test_what_does_not_fit_is_refused(values, words):
    with pytest.raises(ValidationError, match=words):
        DpoSection.model_validate(values)


def test_a_loss_that_m3_does_not_have():
    with pytest.raises(UsageError, match="M3 has no loss 'kto_pair'; it has sigmoid, robust"):
        from_m3({"pref_loss": "kto_pair"})
