"""Kernels from label vectors: dense, nearest neighbours, random features and landmarks."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import wassemble as ws
from wassemble.kernels.builders import embeddings

METRICS = ("sqeuclidean", "euclidean", "cosine")


@pytest.fixture
def x(rng):
    return rng.normal(size=(30, 4))


@pytest.fixture
def y(rng):
    return rng.normal(size=(20, 4)) + 0.5


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("unit_norm", [False, True])
def test_every_metric_equals_scipy(metric, unit_norm, x, y):
    kernel = ws.kernels.from_embeddings(x, y, epsilon=0.7, metric=metric, unit_norm=unit_norm)
    vectors = (unit(x), unit(y)) if unit_norm else (x, y)
    assert_allclose(kernel.to_dense(), np.exp(-cdist(*vectors, metric) / 0.7), rtol=1e-10)
    assert not kernel.is_symmetric


@pytest.mark.parametrize("metric", METRICS)
def test_without_target_the_kernel_is_symmetric_with_ones_on_its_diagonal(metric, x):
    kernel = ws.kernels.from_embeddings(x, epsilon=0.7, metric=metric)
    assert kernel.is_symmetric
    assert_array_equal(np.diag(kernel.to_dense()), 1)
    assert_allclose(kernel.to_dense(), np.exp(-cdist(x, x, metric) / 0.7), rtol=1e-10)


def test_the_default_metric_is_the_squared_distance():
    kernel = ws.kernels.from_embeddings([[0.0], [2.0]], epsilon=2)
    assert_allclose(kernel.to_dense(), [[1, np.exp(-2)], [np.exp(-2), 1]])


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.int64, np.float64)],
)
@pytest.mark.parametrize(
    "options",
    [{}, {"n_neighbors": 2}, {"n_features": 50}, {"n_landmarks": 2}, {"local_bandwidth": 1}],
)
def test_the_kernel_keeps_the_type_of_the_vectors(given, kept, options):
    vectors = np.array([[0.0], [1.0], [2.0]], dtype=given)
    assert ws.kernels.from_embeddings(vectors, epsilon=4.0, **options).dtype == kept


def test_tensors_without_gradient_are_read_as_arrays(x):
    kernel = ws.kernels.from_embeddings(torch.tensor(x), epsilon=0.7)
    assert_array_equal(kernel.to_dense(), ws.kernels.from_embeddings(x, epsilon=0.7).to_dense())
    half = torch.tensor([[0.0], [1.0]], dtype=torch.bfloat16)
    assert ws.kernels.from_embeddings(half, epsilon=0.7).dtype == np.float32


@pytest.mark.parametrize("length", [1e-200, 1e200])
def test_lengths_far_from_1_divide_out(length, x):
    kernel = ws.kernels.from_embeddings(x * length, epsilon=0.7, unit_norm=True)
    expected = ws.kernels.from_embeddings(x, epsilon=0.7, unit_norm=True)
    assert_allclose(kernel.to_dense(), expected.to_dense(), rtol=1e-12)


# -- nearest neighbours --------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("block", [2**21, 45])
def test_neighbours_are_the_nearest_target_labels(metric, block, x, y, monkeypatch):
    monkeypatch.setattr(embeddings, "_BLOCK", block)  # 45: two source labels at a time
    kernel = ws.kernels.from_embeddings(x, y, epsilon=0.7, metric=metric, n_neighbors=3)
    cost = cdist(x, y, metric)
    nearest = cost <= np.sort(cost, axis=1)[:, 2:3]
    assert isinstance(kernel, ws.kernels.SparseKernel)
    assert not kernel.is_symmetric
    assert kernel.n_stored == 3 * len(x)
    assert_allclose(kernel.to_dense(), np.where(nearest, np.exp(-cost / 0.7), 0), rtol=1e-10)


def test_neighbours_are_the_nearest_of_many_target_labels(rng):
    x, y = rng.normal(size=(50, 3)), rng.normal(size=(2000, 3))
    kernel = ws.kernels.from_embeddings(x, y, epsilon=2.0, n_neighbors=5)
    cost = cdist(x, y, "sqeuclidean")
    nearest = cost <= np.sort(cost, axis=1)[:, 4:5]
    assert_array_equal(kernel.to_dense() > 0, nearest)


def test_without_target_a_pair_is_kept_if_either_is_a_neighbour_of_the_other(x):
    kernel = ws.kernels.from_embeddings(x, epsilon=0.7, n_neighbors=3)
    cost = cdist(x, x, "sqeuclidean")
    nearest = cost <= np.sort(cost, axis=1)[:, 2:3]
    assert (nearest != nearest.T).any()
    assert kernel.is_symmetric
    expected = np.where(nearest | nearest.T, np.exp(-cost / 0.7), 0)
    assert_allclose(kernel.to_dense(), expected, rtol=1e-10)
    assert_array_equal(kernel.to_dense(), kernel.to_dense().T)


def test_more_neighbours_than_target_labels_are_all_of_them(x, y):
    kernel = ws.kernels.from_embeddings(x, y, epsilon=0.7, n_neighbors=len(y) + 5)
    dense = ws.kernels.from_embeddings(x, y, epsilon=0.7)
    assert kernel.n_stored == len(x) * len(y)
    assert_allclose(kernel.to_dense(), dense.to_dense(), rtol=1e-12)


def test_a_neighbour_of_similarity_0_is_refused():
    words = r"every kept neighbour must have a similarity above 0 in float64; got exp\(-1 / 0.001\)"
    with pytest.raises(ws.InvalidInputError, match=words + r" = 0 at source label 0.\nhint: take"):
        ws.kernels.from_embeddings([[0.0], [1.0]], epsilon=1e-3, n_neighbors=2)


# -- random features -----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
@pytest.mark.parametrize("with_target", [False, True])
def test_the_measured_error_is_true_and_falls_as_features_grow(metric, with_target, x, y):
    target = y if with_target else None
    options = {"epsilon": 2.0, "metric": metric, "unit_norm": True}
    dense = ws.kernels.from_embeddings(x, target, **options).to_dense()
    errors = []
    for n_features in (10, 100, 1000, 10_000):
        kernel = ws.kernels.from_embeddings(x, target, n_features=n_features, **options)
        assert isinstance(kernel, ws.kernels.LowRankKernel)
        assert kernel.rank == n_features
        assert kernel.is_symmetric is not with_target
        # Fewer labels than probes: every row is measured.
        true = np.linalg.norm(kernel.to_dense() - dense) / np.linalg.norm(dense)
        assert_allclose(kernel.measured_error, true, rtol=1e-6)
        errors.append(kernel.measured_error)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1
    assert errors[-1] < errors[0] / 5


def test_directions_are_standard_normal_and_orthogonal_within_each_block(rng):
    directions = embeddings._orthogonal_normals(30_000, 3, rng)
    assert directions.shape == (30_000, 3)
    # As the signs of a QR factor come, the mean would be 0.25 away from 0.
    assert_allclose(directions.mean(axis=0), 0, atol=0.03)
    assert_allclose(directions.T @ directions / 30_000, np.eye(3), atol=0.05)
    blocks = directions.reshape(-1, 3, 3)
    products = blocks @ blocks.transpose(0, 2, 1)
    assert_allclose(products * (1 - np.eye(3)), 0, atol=1e-10)


def test_the_error_is_measured_on_a_sample_of_many_labels(rng, monkeypatch):
    monkeypatch.setattr(embeddings, "_N_PROBES", 40)
    x = rng.normal(size=(400, 3))
    options = {"epsilon": 4.0, "unit_norm": True}
    kernel = ws.kernels.from_embeddings(x, n_features=200, **options)
    dense = ws.kernels.from_embeddings(x, **options).to_dense()
    true = np.linalg.norm(kernel.to_dense() - dense) / np.linalg.norm(dense)
    assert kernel.measured_error != true
    assert_allclose(kernel.measured_error, true, rtol=0.3)


def test_the_seed_decides_the_features(x):
    first, same, other = (
        ws.kernels.from_embeddings(x, epsilon=4.0, n_features=20, seed=seed).to_dense()
        for seed in (1, 1, 2)
    )
    assert_array_equal(first, same)
    assert (first != other).any()


def test_shifting_all_vectors_changes_no_feature_kernel(x, y):
    kernel = ws.kernels.from_embeddings(x, y, epsilon=4.0, n_features=50)
    shifted = ws.kernels.from_embeddings(x + 100, y + 100, epsilon=4.0, n_features=50)
    assert_allclose(shifted.to_dense(), kernel.to_dense(), rtol=1e-9)


def test_features_that_overflow_or_vanish_are_refused():
    words = r"random features .* must neither overflow nor vanish; got one that does in {} at eps"
    # Centred on the target, so that the source may be where some feature is huge.
    directions = embeddings._orthogonal_normals(2, 500, np.random.default_rng(0))
    source = (directions[:1] / 2 / np.sqrt(2)).astype(np.float32)
    with pytest.raises(ws.InvalidInputError, match=words.format("float32")):
        ws.kernels.from_embeddings(source, 0 * source, epsilon=1.0, n_features=2)
    with pytest.raises(ws.InvalidInputError, match=words.format("float64")):
        ws.kernels.from_embeddings([[0.0]], [[1e3]], epsilon=1.0, n_features=2)


# -- landmarks -----------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("with_target", [False, True])
def test_landmarks_make_a_kernel_without_negative_entries_and_say_their_error(
    metric, with_target, rng
):
    x = rng.normal(size=(200, 3))
    target = rng.normal(size=(150, 3)) if with_target else None
    options = {"epsilon": 2.0, "metric": metric}
    dense = ws.kernels.from_embeddings(x, target, **options).to_dense()
    errors = []
    for n_landmarks in (2, 10, 50):
        kernel = ws.kernels.from_embeddings(x, target, n_landmarks=n_landmarks, **options)
        assert isinstance(kernel, ws.kernels.LowRankKernel)
        assert kernel.rank == n_landmarks
        assert kernel.to_dense().min() >= 0
        true = np.linalg.norm(kernel.to_dense() - dense) / np.linalg.norm(dense)
        assert_allclose(kernel.measured_error, true, rtol=1e-6)
        errors.append(true)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 2


def test_landmarks_are_nearer_than_as_many_random_features(rng):
    x = rng.normal(size=(300, 8))
    landmarks, features = (
        ws.kernels.from_embeddings(x, epsilon=16.0, **{way: 40}).measured_error
        for way in ("n_landmarks", "n_features")
    )
    assert landmarks < features / 2


def test_landmarks_stand_for_local_bandwidths_too(rng):
    x = rng.normal(size=(100, 3))
    options = {"epsilon": 4.0, "local_bandwidth": 5}
    dense = ws.kernels.from_embeddings(x, **options).to_dense()
    kernel = ws.kernels.from_embeddings(x, n_landmarks=60, **options)
    true = np.linalg.norm(kernel.to_dense() - dense) / np.linalg.norm(dense)
    assert_allclose(kernel.measured_error, true, rtol=1e-6)
    assert true < 0.2


def test_more_landmarks_than_target_labels_are_all_of_them(x, y):
    kernel = ws.kernels.from_embeddings(x, y, epsilon=4.0, n_landmarks=100)
    assert kernel.rank == len(y)


def test_a_label_that_is_similar_to_no_landmark_is_refused():
    words = r"every source label must be similar to some landmark; got source label 0, which is"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1e3]], [[0.0]], epsilon=1.0, n_landmarks=1)


# -- local bandwidths ----------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_local_bandwidth_is_the_distance_to_a_neighbour(metric, x):
    kernel = ws.kernels.from_embeddings(x, epsilon=0.7, metric=metric, local_bandwidth=5)
    cost = cdist(x, x, metric)
    widths = np.sqrt(np.sort(cost, axis=1)[:, 5])  # the label itself is at 0
    assert kernel.is_symmetric
    expected = np.exp(-cost / (0.7 * np.outer(widths, widths)))
    assert_allclose(kernel.to_dense(), expected, rtol=1e-10, atol=1e-14)


def test_the_labels_own_bandwidths_hold_for_a_target_of_the_same_labels(x):
    options = {"epsilon": 0.7, "local_bandwidth": 3}
    given, itself = (ws.kernels.from_embeddings(x, y, **options) for y in (x.copy(), None))
    assert_allclose(given.to_dense(), itself.to_dense(), rtol=1e-10)


def test_scaling_all_vectors_changes_no_kernel_of_local_bandwidths(x):
    options = {"epsilon": 0.7, "local_bandwidth": 3}
    kernel, larger = (ws.kernels.from_embeddings(each, **options) for each in (x, 50 * x))
    assert_allclose(larger.to_dense(), kernel.to_dense(), rtol=1e-9)


def test_neighbours_of_local_bandwidths_are_the_most_similar(x):
    options = {"epsilon": 0.7, "local_bandwidth": 5}
    dense = ws.kernels.from_embeddings(x, **options).to_dense()
    sparse = ws.kernels.from_embeddings(x, n_neighbors=4, **options).to_dense()
    largest = dense >= np.sort(dense, axis=1)[:, -4][:, None]
    assert_allclose(sparse, np.where(largest | largest.T, dense, 0), rtol=1e-10)


def test_doubles_are_no_neighbours_and_a_lonely_label_has_bandwidth_1():
    doubled = ws.kernels.from_embeddings([[0.0], [0.0], [2.0]], epsilon=1.0, local_bandwidth=1)
    assert_allclose(doubled.to_dense()[0], [1, 1, np.exp(-1)])
    alone = ws.kernels.from_embeddings([[3.0], [3.0]], epsilon=1.0, local_bandwidth=1)
    assert_array_equal(alone.to_dense(), 1)


def test_random_features_have_one_bandwidth():
    words = r"random features need one bandwidth for all labels; got `local_bandwidth`.\nhint: use"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, n_features=2, local_bandwidth=5)


# -- wrong input ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["source", "target"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("vectors", "must hold real numbers; got an array of dtype <U7"),
        (object(), "must hold real numbers; got an object of type object"),
        ([[1j]], "must hold real numbers; got an array of dtype complex128"),
        ([[1.0, 2.0], [1.0]], "must be a rectangular array of numbers; got rows of different"),
        (1.0, r"must have shape \(n_labels, n_dimensions\), none of them 0; got shape \(\)"),
        ([1.0], r"must have shape \(n_labels, n_dimensions\), none of them 0; got shape \(1,\)"),
        (np.ones((2, 2, 2)), r"must have shape .* got shape \(2, 2, 2\)"),
        (np.ones((0, 2)), r"must have shape .* got shape \(0, 2\)"),
        (np.ones((2, 0)), r"must have shape .* got shape \(2, 0\)"),
        ([[0.0], [np.nan]], "must be finite; got nan at label 1, dimension 0"),
        ([[0.0, -np.inf]], "must be finite; got -inf at label 0, dimension 1"),
        (
            torch.ones(2, 2, requires_grad=True),
            r"must not require a gradient.*\nhint: `kernels.from_c",
        ),
    ],
)
def test_wrong_vectors_are_refused(name, wrong, words):
    vectors = {"source": [[0.0], [1.0]], "target": [[0.0], [1.0]], name: wrong}
    with pytest.raises(ws.InvalidInputError, match=f"`{name}` {words}"):
        ws.kernels.from_embeddings(**vectors, epsilon=1.0)


def test_missing_vectors_are_refused():
    with pytest.raises(ws.InvalidInputError, match=r"`source` must hold real .* type NoneType"):
        ws.kernels.from_embeddings(None, epsilon=1.0)


def test_vectors_of_different_length_are_refused():
    words = "`source` and `target` vectors must have the same number of dimensions; got 2 and 3"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings(np.ones((4, 2)), np.ones((4, 3)), epsilon=1.0)


@pytest.mark.parametrize("options", [{"unit_norm": True}, {"metric": "cosine"}])
def test_a_zero_vector_has_no_direction(options):
    words = r"`target` must have no zero vector .* got one at label 1.\nhint: drop labels without"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1.0]], [[1.0], [0.0]], epsilon=1.0, **options)


@pytest.mark.parametrize(("dtype", "length"), [(np.float32, 1e20), (np.float64, 1e200)])
@pytest.mark.parametrize("options", [{}, {"n_neighbors": 1}, {"n_features": 2}, {"n_landmarks": 1}])
def test_distances_that_overflow_are_refused(dtype, length, options):
    vectors = np.array([[length], [0.0]], dtype=dtype)
    words = f"distances between label vectors must be finite in {np.dtype(dtype)}; got an overflow"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings(vectors, epsilon=1.0, **options)


@pytest.mark.parametrize("wrong", ["manhattan", "", None, 2, np.array(["cosine", "cosine"])])
def test_an_unknown_metric_is_refused(wrong):
    words = "`metric` must be one of sqeuclidean, euclidean, cosine; got"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, metric=wrong)


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, "1", None, [1.0], 1j])
def test_a_wrong_epsilon_is_refused(wrong):
    with pytest.raises(
        ws.InvalidInputError, match=r"`epsilon` must be (a number|finite and) above 0"
    ):
        ws.kernels.from_embeddings([[1.0]], epsilon=wrong)


@pytest.mark.parametrize("wrong", ["yes", None, 1, np.ones(2)])
def test_unit_norm_is_true_or_false(wrong):
    with pytest.raises(ws.InvalidInputError, match="`unit_norm` must be True or False; got"):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, unit_norm=wrong)


@pytest.mark.parametrize("name", ["n_neighbors", "n_features", "n_landmarks", "local_bandwidth"])
def test_counts_are_whole_numbers_of_at_least_1(name):
    for wrong in ("3", 3.0, True, [3], 1j, object()):
        with pytest.raises(ws.InvalidInputError, match=f"`{name}` must be a whole number; got"):
            ws.kernels.from_embeddings([[1.0]], epsilon=1.0, **{name: wrong})
    for wrong in (0, -1):
        with pytest.raises(ws.InvalidInputError, match=f"`{name}` must be at least 1; got {wrong}"):
            ws.kernels.from_embeddings([[1.0]], epsilon=1.0, **{name: wrong})


def test_two_ways_to_shrink_a_kernel_are_one_too_many():
    words = "`n_neighbors` and `n_features` are two ways to shrink a kernel; got both"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, n_neighbors=1, n_features=1)


def test_random_features_need_a_gaussian_kernel():
    words = r'random features need a Gaussian kernel; got metric "euclidean".\nhint: use "sqeucl'
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, metric="euclidean", n_features=3)


def test_a_wrong_seed_is_refused():
    for wrong in ("x", None, 1.5, True):
        with pytest.raises(ws.InvalidInputError, match="`seed` must be a whole number; got"):
            ws.kernels.from_embeddings([[1.0]], epsilon=1.0, n_features=3, seed=wrong)
    with pytest.raises(ws.InvalidInputError, match="`seed` must be at least 0; got -1"):
        ws.kernels.from_embeddings([[1.0]], epsilon=1.0, n_features=3, seed=-1)
