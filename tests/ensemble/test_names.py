"""Names count wherever there are names: nothing that has them is read by its position."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wassemble as ws
from wassemble import InvalidInputError, Predictions, fuse
from wassemble.ensemble.fuse import FuseOptions

LABELS, SAMPLES = ["cat", "dog", "cow"], ["x", "y"]
SCORES = {
    "a": np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]),
    "b": np.array([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5]]),
}
FRAMES = {
    name: pd.DataFrame(scores, index=SAMPLES, columns=LABELS) for name, scores in SCORES.items()
}
SIMILAR = pd.DataFrame(
    [[1.0, 0.5, 0.1], [0.4, 1.0, 0.2], [0.1, 0.3, 1.0]], index=LABELS, columns=LABELS
)


def shuffled(frame):
    """The same frame with rows and columns in another order."""
    return frame.loc[frame.index[::-1], [frame.columns[-1], *frame.columns[:-1]]]


def in_order(found):
    return found.loc[SAMPLES, LABELS].to_numpy()


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame, include_index=True),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame.rename_axis("name").reset_index()),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("give", ["one", "dict", "list", "function"])
def test_a_kernel_in_a_data_frame_is_put_in_order_by_name(library, give):
    expected = fuse(FRAMES, kernel=ws.LabelledKernel(SIMILAR.to_numpy(), LABELS, LABELS))
    frame = LIBRARIES[library](shuffled(SIMILAR))
    kernel = {
        "one": frame,
        "dict": {"a": frame, "b": SIMILAR},
        "list": [frame, SIMILAR],
        "function": lambda source, target: frame,
    }[give]
    np.testing.assert_allclose(in_order(fuse(FRAMES, kernel=kernel)), in_order(expected))


def test_an_identity_of_shuffled_rows_leaves_labels_as_they_are():
    identity = pd.DataFrame(np.eye(3), index=LABELS, columns=LABELS)
    expected = fuse(FRAMES, kernel=ws.LabelledKernel(np.eye(3), LABELS))
    np.testing.assert_allclose(
        in_order(fuse(FRAMES, kernel=shuffled(identity))), in_order(expected)
    )


def test_a_kernel_that_lacks_a_label_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match="every label of 'a'; it lacks 'cow'"):
        fuse(FRAMES, kernel=SIMILAR.drop(index="cow"))
    with pytest.raises(InvalidInputError, match="every target label; it lacks 'dog'"):
        fuse(FRAMES, kernel=SIMILAR.drop(columns="dog"), target=LABELS)
    with pytest.raises(InvalidInputError, match="it lacks 'cat', 'dog', 'cow'"):
        fuse(FRAMES, kernel=SIMILAR.reset_index(drop=True))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_list_of_data_frames_is_fused_by_names(library):
    make = LIBRARIES[library]
    expected = fuse({"model 1": make(FRAMES["a"]), "model 2": make(FRAMES["b"])})
    fusion = ws.Fusion().run([make(FRAMES["a"]), make(shuffled(FRAMES["b"]))])
    assert [member.model for member in fusion.members] == ["model 1", "model 2"]
    found = fuse(iter([make(FRAMES["a"]), make(shuffled(FRAMES["b"]))]))
    assert type(found) is type(expected)
    columns = [np.asarray(found[label]) for label in LABELS]
    np.testing.assert_allclose(columns, [np.asarray(expected[label]) for label in LABELS])


@pytest.mark.parametrize(
    "models",
    [
        [FRAMES["a"], SCORES["b"]],
        [SCORES["a"], FRAMES["b"]],
        [Predictions("a", SAMPLES, LABELS, SCORES["a"]), FRAMES["b"]],
        [Predictions("a", SAMPLES, LABELS, SCORES["a"]), SCORES["b"]],
    ],
)
def test_lists_of_several_kinds_are_refused(models):
    for call in (fuse, ws.Fusion().run):
        with pytest.raises(InvalidInputError, match="all Predictions or all data frames; got"):
            call(models)


def test_one_table_alone_is_refused():
    for one in (FRAMES["a"], Predictions("a", SAMPLES, LABELS, SCORES["a"])):
        for call in (fuse, ws.Fusion().run):
            with pytest.raises(InvalidInputError, match="in a dict or a list; got one"):
                call(one)


def test_weights_go_by_name():
    expected = in_order(fuse(FRAMES, weights={"a": 0.9, "b": 0.1}))
    found = fuse(FRAMES, weights=pd.Series([0.1, 0.9], index=["b", "a"]))
    np.testing.assert_allclose(in_order(found), expected)
    each = pd.DataFrame([[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]], index=["a", "b"], columns=LABELS)
    np.testing.assert_array_equal(
        in_order(fuse(FRAMES, weights=shuffled(each))),
        in_order(fuse(FRAMES, weights=each.to_numpy())),
    )
    with pytest.raises(InvalidInputError, match="must name each of 'a', 'b'"):
        fuse(FRAMES, weights=pd.Series([0.1, 0.9]))
    with pytest.raises(InvalidInputError, match=r"column for each target label.*none for 'cow'"):
        fuse(FRAMES, weights=each.drop(columns="cow"))


def test_class_labels_may_be_whole_numbers():
    numbers = {name: frame.set_axis([0, 1, 2], axis=1) for name, frame in FRAMES.items()}
    texts = {name: frame.set_axis(["0", "1", "2"], axis=1) for name, frame in FRAMES.items()}
    found, expected = fuse(numbers), fuse(texts)
    assert found.columns.tolist() == [0, 1, 2]
    assert expected.columns.tolist() == ["0", "1", "2"]
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())
    both = fuse({"a": numbers["a"], "b": texts["b"]})
    np.testing.assert_array_equal(both.to_numpy(), expected.to_numpy())
    kernel = pd.DataFrame(SIMILAR.to_numpy(), index=[0, 1, 2], columns=[0, 1, 2])
    fused = fuse(numbers, kernel=kernel.loc[[2, 1, 0]])
    other = fuse(texts, kernel=ws.LabelledKernel(SIMILAR.to_numpy(), range(3)))
    np.testing.assert_array_equal(fused.to_numpy(), other.to_numpy())
    some = ws.Fusion(target=[2, 0]).run(numbers)
    assert some.consensus.labels.names == ("2", "0")
    assert some.to_frame().columns.tolist() == [2, 0]


def test_models_may_be_named_by_whole_numbers():
    numbered = {1: FRAMES["a"], 2: FRAMES["b"]}
    found = fuse(numbered, weights={1: 0.9, 2: 0.1}, kernel={1: SIMILAR, 2: SIMILAR})
    expected = fuse(FRAMES, weights={"a": 0.9, "b": 0.1}, kernel=SIMILAR)
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())


def test_a_kernel_with_names_does_not_go_with_arrays():
    with pytest.raises(InvalidInputError, match=r"must go with predictions that have names"):
        fuse(list(SCORES.values()), kernel=ws.LabelledKernel(SIMILAR))


def test_dask_frames_keep_whole_numbers_too():
    dd = pytest.importorskip("dask.dataframe")
    numbers = {name: frame.set_axis([0, 1, 2], axis=1) for name, frame in FRAMES.items()}
    kernel = pd.DataFrame(SIMILAR.to_numpy())
    lazy = {name: dd.from_pandas(frame, npartitions=1) for name, frame in numbers.items()}
    found = ws.scale.fuse_lazily(lazy, ws.Fusion(kernel=kernel.loc[[2, 0, 1]]))
    assert found.columns.tolist() == [0, 1, 2]
    expected = fuse(numbers, kernel=kernel)
    np.testing.assert_allclose(found.compute().to_numpy(), expected.to_numpy())
    nameless = ws.scale.fuse_lazily(list(lazy.values()), ws.Fusion(kernel=kernel))
    np.testing.assert_allclose(nameless.compute().to_numpy(), expected.to_numpy())


def test_a_table_without_ids_is_fused_by_its_index():
    plain = {name: pd.DataFrame(scores) for name, scores in SCORES.items()}
    found = fuse(plain)
    np.testing.assert_array_equal(found.to_numpy(), fuse(FRAMES).to_numpy())
    assert found.index.tolist() == [0, 1]
    turned = fuse({"a": plain["a"], "b": plain["b"].loc[[1, 0]]})
    np.testing.assert_array_equal(turned.to_numpy(), found.to_numpy())


@pytest.mark.parametrize("nothing", [[], (), {}, iter([])])
def test_no_models_are_refused(nothing):
    with pytest.raises(InvalidInputError, match="at least one model; got none"):
        fuse(nothing)


@pytest.mark.parametrize("models", [FRAMES, list(SCORES.values())])
def test_a_rule_is_no_text(models):
    with pytest.raises(InvalidInputError, match=r"got 'arithmetic'\.\nhint: .*ws\.ARITHMETIC"):
        fuse(models, rule="arithmetic")


OPTIONS_BY_NAME = {
    "target": ["cat", "dog"],
    "aliases": {"cow": "dog"},
    "fold": True,
    "other": "cow",
    "samples": "common",
    "allow_disjoint": True,
    "by_row": True,
    "leftover": 0.5,
    "unobserved": "drop",
    "hard_confidence": 0.5,
}


@pytest.mark.parametrize("name", OPTIONS_BY_NAME)
def test_fuse_takes_what_a_fusion_takes(name):
    frames = {"a": FRAMES["a"], "b": FRAMES["b"][["cat", "dog"]] / 2}
    options = {"kind": "multiclass", name: OPTIONS_BY_NAME[name]}
    expected = ws.Fusion(**options).run(frames).to_frame()
    pd.testing.assert_frame_equal(fuse(frames, **options), expected)


@pytest.mark.parametrize("name", OPTIONS_BY_NAME)
def test_options_about_names_are_refused_beside_arrays(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must go with predictions that have na"):
        fuse(list(SCORES.values()), **{name: OPTIONS_BY_NAME[name]})


def test_every_field_of_a_fusion_is_an_option_of_fuse():
    fuses = inspect.signature(fuse).parameters
    for name, own in inspect.signature(ws.Fusion).parameters.items():
        assert name in FuseOptions.__annotations__
        if name in fuses:
            assert fuses[name].default == own.default


@pytest.mark.parametrize("form", ["frames", "predictions", "folders", "dask"])
def test_counts_with_names_are_divided_by_their_sums_if_asked(form, tmp_path):
    counts = {name: (frame * 30).round() for name, frame in FRAMES.items()}
    expected = fuse({name: frame.div(frame.sum(axis=1), axis=0) for name, frame in counts.items()})
    given = counts
    if form == "predictions":
        given = [
            Predictions(name, SAMPLES, LABELS, frame.to_numpy(), kind="multilabel")
            for name, frame in counts.items()
        ]
    elif form == "folders":
        given = {name: tmp_path / name for name in counts}
        for name, folder in given.items():
            folder.mkdir()
            counts[name].rename_axis("sample").to_csv(folder / "part.csv")
    elif form == "dask":
        dd = pytest.importorskip("dask.dataframe")
        given = {name: dd.from_pandas(frame, npartitions=1) for name, frame in counts.items()}
    if form in ("dask", "folders"):
        found = ws.scale.fuse_lazily(given, ws.Fusion(normalize=True)).compute()
        found = found if form == "dask" else found.set_index("sample")
    else:
        found = fuse(given, normalize=True)
    scores = found.scores if isinstance(found, Predictions) else in_order(found)
    np.testing.assert_allclose(scores, in_order(expected), rtol=1e-9)


def test_multi_label_scores_are_not_divided_by_their_sums():
    with pytest.raises(InvalidInputError, match=r"`normalize` makes histograms; got kind=\"multil"):
        ws.Fusion(normalize=True, kind="multilabel")


CARS = pd.DataFrame(
    [[1.0, 0.0], [0.9, 0.0], [0.0, 1.0]],
    index=["sedan", "coupe", "bicycle"],
    columns=["car", "bicycle"],
)


@pytest.mark.parametrize("give", ["frame", "labelled", "dict"])
def test_a_kernel_with_names_brings_its_target_labels(give):
    fine = pd.DataFrame([[0.5, 0.3, 0.2]], index=["x"], columns=CARS.index)
    models = {"a": fine, "b": fine[["bicycle", "coupe", "sedan"]]}
    kernel = {
        "frame": CARS,
        "labelled": ws.LabelledKernel(CARS),
        "dict": {"a": CARS, "b": ws.LabelledKernel(CARS)},
    }[give]
    found = fuse(models, kernel=kernel)
    assert list(found.columns) == ["car", "bicycle"]
    pd.testing.assert_frame_equal(found, fuse(models, kernel=kernel, target=["car", "bicycle"]))


def test_a_model_of_target_labels_that_the_kernel_does_not_know_goes_by_name():
    fine = pd.DataFrame([[0.5, 0.3, 0.2]], index=["x"], columns=CARS.index)
    coarse = pd.DataFrame([[0.6, 0.4]], index=["x"], columns=["car", "bicycle"])
    found = fuse([fine, coarse], kernel=CARS)
    assert list(found.columns) == ["car", "bicycle"]
    by_name = pd.DataFrame(np.eye(2), index=CARS.columns, columns=CARS.columns)
    expected = fuse([fine, coarse], kernel=[CARS, by_name])
    pd.testing.assert_frame_equal(found, expected)


def test_a_model_that_neither_the_kernel_nor_the_target_knows_is_refused_with_a_way_out():
    fine = pd.DataFrame([[0.5, 0.3, 0.2]], index=["x"], columns=CARS.index)
    strange = pd.DataFrame([[0.6, 0.4]], index=["x"], columns=["lorry", "bicycle"])
    with pytest.raises(InvalidInputError, match="it lacks 'lorry'") as caught:
        fuse({"a": fine, "b": strange}, kernel=CARS)
    assert "aliases" in str(caught.value)


def test_a_kernel_within_one_space_keeps_the_labels_of_the_models():
    found = fuse({"a": FRAMES["a"][["dog", "cat"]]}, kernel=SIMILAR, kind="multiclass")
    assert list(found.columns) == ["dog", "cat"]
