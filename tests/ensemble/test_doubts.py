"""Tables in memory that do not belong together, or look wrong: warnings and errors in Python."""

import numpy as np
import pandas as pd
import pytest

import wassemble as ws
from wassemble import InputWarning, InvalidInputError, Predictions


def model(name, samples, labels, scores=None):
    samples = list(samples)
    even = np.full((len(samples), len(labels)), 1 / len(labels))
    return Predictions(name, samples, labels, even if scores is None else scores)


def test_frames_without_a_sample_in_common_are_refused():
    frames = {
        "a": pd.DataFrame({"sample": ["001", "002"], "cat": [0.7, 0.2], "dog": [0.3, 0.8]}),
        "b": pd.DataFrame({"sample": [1, 2], "cat": [0.7, 0.2], "dog": [0.3, 0.8]}),
    }
    with pytest.raises(InvalidInputError, match="zeros in front: '001' and '1'"):
        ws.fuse(frames)
    fusion = ws.Fusion(allow_disjoint=True).run(frames)
    assert fusion.consensus.n_samples == 4
    assert fusion.account.warnings == []


def test_a_small_overlap_warns_and_is_in_the_report():
    models = [model("a", range(100), ["cat", "dog"]), model("b", range(90, 200), ["cat", "dog"])]
    with pytest.warns(InputWarning, match="'a' shares 10 of 100 samples"):
        fusion = ws.Fusion().run(models)
    assert "warning: 'a' shares 10 of 100 samples" in fusion.report
    assert ws.Fusion(allow_disjoint=True).run(models).account.warnings == []


def test_labels_that_one_model_tells_apart_are_no_twins():
    both = model("both", ["x"], ["Polish", "polish", "dog"])
    one = model("one", ["x"], ["polish", "dog"])
    assert ws.Fusion().run([both, one]).account.warnings == []


def test_twins_are_told_through_a_kernel_too():
    kernel = ws.kernels.from_spelling
    one, other = model("one", ["x"], ["Cat", "dog"]), model("other", ["x"], ["cat", "dog"])
    with pytest.warns(InputWarning, match="are different labels: 'Cat' and 'cat'"):
        ws.Fusion(kernel=kernel).run([one, other])
    both = model("both", ["x"], ["Cat", "cat"])
    assert ws.Fusion(kernel=kernel).run([both, other]).account.warnings == []


def test_a_model_that_meets_no_target_label_is_a_warning():
    models = [model("a", ["x"], ["cat", "dog"]), model("b", ["x"], ["Hund", "Katze"])]
    with pytest.warns(InputWarning, match="no label of 'b' is a target label"):
        ws.Fusion(target=["cat", "dog"]).run(models)
    with pytest.raises(InvalidInputError, match="must be labels of the models; none is"):
        ws.Fusion(target=["lynx"]).run(models)
    aliases = {"Hund": "dog", "Katze": "cat"}
    assert ws.Fusion(target=["cat", "dog"], aliases=aliases).run(models).account.warnings == []


def test_labels_may_meet_through_others():
    chain = [
        model("a", ["x"], ["1", "2"]),
        model("b", ["x"], ["3", "4"]),
        model("c", ["x"], ["2", "3"]),
    ]
    assert ws.Fusion().run(chain).account.warnings == []
    with pytest.warns(InputWarning, match="'a' and 'b' have no label in common"):
        ws.Fusion().run(chain[:2])


def test_numbers_from_0_and_from_1_are_told():
    zero, one = model("zero", ["x"], ["0", "1", "2"]), model("one", ["x"], ["3", "1", "2"])
    with pytest.warns(InputWarning, match="'zero' are the numbers 0 to 2, those of 'one' 1 to 3"):
        ws.Fusion().run([zero, one])
    others = model("two", ["x"], ["0", "1", "2"]), model("four", ["x"], ["1", "2", "3", "4"])
    for other in others:
        assert ws.Fusion().run([zero, other]).account.warnings == []


def test_percentages_in_memory_are_refused():
    with pytest.raises(InvalidInputError, match="every row sums to 100"):
        model("a", ["x"], ["cat", "dog"], [[70.0, 30.0]])
    declared = Predictions("a", ["x"], ["cat", "dog"], [[70.0, 30.0]], kind="multilabel")
    assert declared.kind == "multilabel"


def test_frames_without_ids_are_fused_by_row():
    first = pd.DataFrame({"cat": [0.7, 0.2], "dog": [0.3, 0.8]})
    second = pd.DataFrame({"cat": [0.6, 0.1], "dog": [0.4, 0.9]})
    fusion = ws.Fusion(by_row=True).run({"a": first, "b": second})
    assert fusion.consensus.samples.tolist() == [0, 1]
    named = second.assign(sample=["x", "y"])
    fusion = ws.Fusion(by_row=True).run({"a": first, "b": named})
    assert fusion.consensus.samples.tolist() == ["x", "y"]
    with pytest.raises(InvalidInputError, match="got 2 of 'a' and 1 of 'b'"):
        ws.Fusion(by_row=True).run({"a": first, "b": second[:1]})


def test_predictions_given_to_by_row_are_left_as_they_are():
    first, second = model("a", [0, 1], ["cat", "dog"]), model("b", ["x", "y"], ["cat", "dog"])
    with pytest.raises(InvalidInputError, match="must have the same ids"):
        ws.Fusion(by_row=True).run([first, second])
    ws.Fusion(by_row=True).run([second, second.replace(model="c")])
    assert second.samples.tolist() == ["x", "y"]


def test_a_consensus_keeps_the_name_of_the_ids(tmp_path):
    frame = pd.DataFrame({"image": ["x", "y"], "cat": [0.7, 0.2], "dog": [0.3, 0.8]})
    other = frame.rename(columns={"image": "sample"})
    consensus = ws.fuse({"a": frame, "b": other})
    assert list(consensus.columns) == ["image", "cat", "dog"]
    fusion = ws.Fusion().run({"a": frame, "b": other})
    ws.write_predictions(tmp_path / "f.csv", fusion.consensus)
    assert (tmp_path / "f.csv").read_text().startswith("image,cat,dog\n")


def test_a_label_with_the_name_of_the_ids_gives_them_another(tmp_path):
    given = model("a", ["x"], ["image", "text"])
    given.origin = ws.inputs.predictions.value.Origin(id_column="image")
    ws.write_predictions(tmp_path / "f.csv", given)
    assert (tmp_path / "f.csv").read_text().startswith("sample,image,text\n")


def test_an_unnamed_column_of_a_frame_is_no_label():
    frame = pd.DataFrame({"Unnamed: 0": [0, 7], "cat": [0.7, 0.2], "dog": [0.3, 0.8]})
    read = ws.inputs.predictions_from_frame(frame, "a")
    assert read.samples.tolist() == [0, 7]
    assert read.labels.names == ("cat", "dog")
    assert "as pandas calls a column without a name" in read.origin.ids


def test_a_stray_column_of_a_frame_is_named():
    frame = pd.DataFrame({"sample": ["x"], "cat": [0.7], "dog": [0.3], "confidence": [0.7]})
    with pytest.raises(InvalidInputError, match="got 'confidence', without which every row"):
        ws.fuse({"a": frame})
    read = ws.inputs.predictions_from_frame(frame, "a", labels=["cat", "dog"])
    assert read.kind == "multiclass"


@pytest.mark.parametrize("silent", [np.empty((0, 2)), np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_a_model_without_any_answer_is_a_warning(silent):
    ids = ["x", "y"][: len(silent)]
    models = [model("a", ["x", "y"], ["cat", "dog"])]
    models.append(Predictions("b", ids, ["cat", "dog"], silent, kind="multiclass"))
    with pytest.warns(InputWarning, match="'b' answered none of 2 samples and has no say"):
        ws.Fusion().run(models)


def test_rows_that_nearly_sum_to_one_are_doubted(rng):
    scores = rng.dirichlet(np.full(10, 0.5), size=30).round(1)
    frame = pd.DataFrame(scores, index=[f"s{i}" for i in range(30)], columns=list("0123456789"))
    with pytest.warns(InputWarning, match="as probabilities do that were rounded") as caught:
        ws.fuse({"a": frame, "b": frame})
    assert "normalize=True divides each row by its sum" in str(caught[0].message)
