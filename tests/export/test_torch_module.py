"""Heads in torch: the same graph, exportable, with gradients, and off the host."""

import numpy as np
import pytest
import torch
from export.small import LABELS
from torch.utils._python_dispatch import TorchDispatchMode

import wassemble as ws
from wassemble.export import export_torch
from wassemble.inputs import Predictions
from wassemble.kernels import DenseKernel, LabelledKernel, SparseKernel
from wassemble.labels import LabelSpace

FIVE_SWEEPS = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
NAMES = [f"label {i}" for i in range(6)]


def spaces():
    return {"a": LabelSpace(NAMES), "b": LabelSpace(NAMES)}


def fusion(rule=FIVE_SWEEPS, *, sparse=False):
    entries = np.exp(-2 * np.random.default_rng(0).random((6, 6)))
    if sparse:
        import scipy.sparse as sp

        kernel = SparseKernel(sp.csr_array(np.where(entries > 0.4, entries, 0) + np.eye(6)))
    else:
        kernel = DenseKernel(entries)
    return ws.Fusion(rule, LabelledKernel(kernel, NAMES, NAMES), kind="multiclass")


def tables(seed=0):
    rng = np.random.default_rng(seed)
    return [Predictions(name, range(9), NAMES, rng.dirichlet(np.ones(6), size=9)) for name in "ab"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "rule",
    [FIVE_SWEEPS, ws.USUAL_RULE, ws.Barycenter(max_sweeps=9, tolerance=None), ws.GEOMETRIC,
     ws.GatedMean(0.5, n_top=2, floor=0.7), ws.Single("b")],
    ids=str,
)  # fmt: skip
def test_a_module_answers_as_the_library(rule, sparse):
    if sparse and rule == ws.USUAL_RULE:
        pytest.skip("sure models take too many sweeps")
    module = export_torch(fusion(rule, sparse=sparse), models=spaces(), abstentions=False)
    models = [each for each in tables() if each.model in module.about["models"]]
    given = [torch.tensor(model.scores, dtype=torch.float32) for model in models]
    expected = fusion(rule, sparse=sparse).run(tables()).consensus.scores
    np.testing.assert_allclose(module(*given)["scores"], expected, atol=1e-5)


def test_torch_export_takes_it_with_any_number_of_samples():
    module = export_torch(fusion(), models=spaces())
    given = (*(torch.tensor(m.scores, dtype=torch.float32) for m in tables()), torch.ones(9, 2))
    n_samples = torch.export.Dim("n_samples", min=2)
    program = torch.export.export(module, given, dynamic_shapes={"tensors": ({0: n_samples},) * 3})
    fewer = tuple(each[:4] for each in given)
    torch.testing.assert_close(program.module()(*fewer), module(*fewer))


def test_gradients_flow_to_the_scores():
    module = export_torch(fusion(), models=spaces(), abstentions=False, dtype="float64")
    given = [torch.tensor(m.scores, requires_grad=True) for m in tables()]
    assert torch.autograd.gradcheck(lambda *scores: module(*scores)["scores"], given)


class _StaysOffTheHost(TorchDispatchMode):
    """Refuses every step that would read numbers back."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name()
        if "_local_scalar_dense" in name or "item" in name or "nonzero" in name:
            raise AssertionError(f"{name} waits for the device")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_falls_back_to_the_host(sparse):
    module = export_torch(fusion(sparse=sparse), models=spaces())
    given = [*(torch.tensor(m.scores, dtype=torch.float32) for m in tables()), torch.ones(9, 2)]
    with _StaysOffTheHost():
        module(*given)
    elsewhere = module.to("meta")(*(each.to("meta") for each in given))
    assert all(each.device.type == "meta" for each in elsewhere.values())
    assert elsewhere["scores"].shape == (9, 6)


def test_stacked_rules_run_in_torch():
    rng = np.random.default_rng(0)
    truth = rng.integers(6, size=150)
    models = [
        Predictions(
            name, range(150), NAMES, _softmax(2 * np.eye(6)[truth] + rng.normal(size=(150, 6)))
        )
        for name in LABELS
    ]
    learned = ws.learn_ensemble(models, [NAMES[i] for i in truth], n_folds=2)
    stacked = next(
        each.fusion for each in (learned.fitted, *learned.rivals)
        if each.fusion.rule.key == "stacked consensus"
    )  # fmt: skip
    module = export_torch(stacked, models=dict(learned.models), samples=models, abstentions=False)
    found = module(*(torch.tensor(m.scores, dtype=torch.float32) for m in models))["scores"]
    np.testing.assert_allclose(found, stacked.run(models).consensus.scores, atol=1e-5)


def _softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
