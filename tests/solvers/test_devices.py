"""Everything stays on the device of the tensors that came in, in types that the device has.

There may be no GPU where this runs. In its place the default device is torch's "meta", which
holds no numbers: a tensor that is not put on the device of the inputs breaks the solve. NumPy
reads no GPU, and must not read the processor in its place.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import MASSES, make_case
from torch.utils._python_dispatch import TorchDispatchMode

import wassemble as ws
from wassemble import _arrays
from wassemble._checks import as_float_array

RNG = np.random.default_rng(0)
BAND = np.eye(6) + 0.4 * np.eye(6, k=1) + 0.4 * np.eye(6, k=-1)
# A source label would have nowhere to go if these entries vanished.
FAINT = np.array([1, 1, 1, 1, 1, 1e-60])[:, None]
KERNELS = {
    "dense": np.exp(-3 * RNG.uniform(size=(6, 6))),
    "dense with zeros": BAND,
    # Too small for the product of any type: log arithmetic falls back on a true log-sum-exp.
    "dense in logs": ws.kernels.DenseKernel.from_log(
        -2000.0 * (1 - np.eye(6)) - RNG.uniform(size=(6, 6))
    ),
    "dense beyond float32": FAINT * np.exp(-3 * RNG.uniform(size=(6, 6))),
    "sparse": sp.csr_array(BAND),
    "sparse beyond float32": sp.csr_array(FAINT * BAND),
    "low rank": ws.kernels.LowRankKernel(*RNG.uniform(0.2, 1, size=(2, 6, 3))),
    "diagonal": ws.kernels.DiagonalKernel(RNG.uniform(0.5, 1, size=6)),
    "diagonal per sample": ws.kernels.DiagonalKernel(RNG.uniform(0.5, 1, size=(4, 6))),
    "identity": ws.kernels.IdentityKernel(6),
}
SWEEPS = {"tolerance": 1e-5, "max_sweeps": 40}


@pytest.fixture(autouse=True)
def no_host(monkeypatch):
    monkeypatch.setattr(_arrays, "_HOST_DEVICES", frozenset())


def tensors(case, dtype=torch.float32):
    return [torch.tensor(h, dtype=dtype) for h in case.histograms]


def look_at(result):
    """All that a result computes on demand, as NumPy arrays."""
    sent = [*result.mass_sent(1, 2), *result.contributions(1, 2)]
    cost = result.transport_cost(np.ones((6, 6)))
    found = [result.barycenter, result.coupling(0, 1), *sent, cost, result.log_scalings()]
    assert all(isinstance(each, torch.Tensor) for each in found)
    return [each.numpy() for each in found[:-1]]


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_leaves_the_device_of_the_inputs(name, mass):
    case = make_case(1, n_source=6, mass=mass).but(weights=[0.5, 0.5, 0.0])
    expected = case.but(kernels=KERNELS[name]).solve(**SWEEPS)
    inputs = case.but(histograms=tensors(case, torch.float64), kernels=KERNELS[name])
    with torch.device("meta"):
        result = inputs.solve(**SWEEPS)
        warm = inputs.solve(initial=result, **SWEEPS)
        found = look_at(result)
    assert result.barycenter.device.type == warm.barycenter.device.type == "cpu"
    np.testing.assert_allclose(found[0], expected.barycenter, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(found[1], expected.coupling(0, 1), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("name", ["dense with zeros", "sparse"])
def test_nothing_of_the_debiased_consensus_leaves_the_device(name):
    kind = ws.kernels.SparseKernel if name == "sparse" else ws.kernels.DenseKernel
    kernel = kind(KERNELS[name], symmetric=True)
    case = make_case(2, n_source=6).but(kernels=kernel)
    options = {"debias": True, "max_sweeps": 20, "tolerance": None}
    inputs = case.but(histograms=tensors(case, torch.float64))
    with torch.device("meta"):
        result = inputs.solve(**options)
    expected = case.solve(**options)
    np.testing.assert_allclose(result.barycenter.numpy(), expected.barycenter, rtol=1e-6)


def test_rows_that_leave_early_and_longer_steps_stay_on_the_device():
    case = make_case(8, n_source=6, kernel_spread=8.0)
    inputs = case.but(histograms=tensors(case, torch.float64))
    with torch.device("meta"):
        result = inputs.solve()
    assert len(set(result.n_sweeps)) > 1
    np.testing.assert_allclose(result.barycenter.numpy(), case.solve().barycenter, rtol=1e-4)


def test_fuse_and_means_stay_on_the_device():
    case = make_case(3, n_source=6)
    inputs = tensors(case)
    with torch.device("meta"):
        found = [ws.fuse(inputs), ws.GEOMETRIC.fuse(inputs).consensus]
    assert all(each.device.type == "cpu" for each in found)
    np.testing.assert_allclose(found[0], ws.fuse(case.histograms), rtol=1e-5)


def test_tensors_elsewhere_are_brought_to_the_device_of_the_first():
    there = torch.zeros(2, device="meta")
    for value in (torch.zeros(3), torch.zeros(3, dtype=torch.int64), np.zeros(3), [0, 0, 1]):
        assert as_float_array(value, "weights", like=there).device.type == "meta"


class NoFloat64(TorchDispatchMode):
    """A device without float64, as Apple's: an operation that makes float64 is an error."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        assert getattr(out, "dtype", None) != torch.float64, f"{function} made float64"
        return out


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("name", KERNELS)
def test_a_device_without_float64_is_served_in_float32(name, mass, monkeypatch):
    monkeypatch.setattr(_arrays, "_SINGLE_DEVICES", {"cpu"})
    case = make_case(1, n_source=6, mass=mass)
    expected = case.but(kernels=KERNELS[name]).solve(**SWEEPS)
    inputs = case.but(histograms=tensors(case), kernels=KERNELS[name])
    with NoFloat64():
        result = inputs.solve(**SWEEPS)
        found = look_at(result)
    assert result.log_scalings().dtype == torch.float32
    np.testing.assert_allclose(found[0], expected.barycenter, rtol=1e-3, atol=1e-5)
    assert (result.status == expected.status).all()


def test_whole_numbers_and_debiasing_on_a_device_without_float64(monkeypatch):
    monkeypatch.setattr(_arrays, "_SINGLE_DEVICES", {"cpu"})
    case = make_case(2, n_source=6).but(kernels=ws.kernels.DenseKernel(BAND, symmetric=True))
    options = {"debias": True, "max_sweeps": 20, "tolerance": None}
    inputs = case.but(histograms=tensors(case))
    with NoFloat64():
        result = inputs.solve(**options)
        counts = [torch.tensor([1, 3]), torch.tensor([2, 2])]
        counted = ws.solve_barycenter(
            counts, ws.kernels.IdentityKernel(2), normalize=True
        ).barycenter
    np.testing.assert_allclose(result.barycenter, case.solve(**options).barycenter, rtol=1e-3)
    np.testing.assert_allclose(counted, [0.125**0.5, 0.375**0.5], rtol=1e-6)


def test_a_diagonal_that_float32_cannot_hold_is_refused_without_float64(monkeypatch):
    monkeypatch.setattr(_arrays, "_SINGLE_DEVICES", {"cpu"})
    with pytest.raises(ValueError, match="must fit float32 on a device that has no float64"):
        ws.fuse(torch.full((2, 2), 0.5), kernel=ws.kernels.DiagonalKernel([1.0, 1e-60]))
