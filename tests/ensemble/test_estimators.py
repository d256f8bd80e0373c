"""The estimators behave as scikit-learn's do."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import wassemble as ws
from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.estimators import TableMember

MEMBERS = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
QUICK = {"cv": 2, "n_folds": 2, "time_budget": 0.0, "random_state": 0}


# These take several labels at once, sample weights and sparse features; one answers with
# margins, the other with a list of tables.
MULTILABEL_MEMBERS = [
    ("ridge", RidgeClassifier()),
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
]
THRESHOLDS = "predict decides by a threshold that was learned for each label, not at one half"


def expected_failures(estimator):
    if not isinstance(estimator, ws.WassersteinMultilabel):
        return {}
    return {"check_classifiers_train": THRESHOLDS, "check_classifier_multioutput": THRESHOLDS}


@parametrize_with_checks(
    [
        ws.WassersteinClassifier(MEMBERS, **QUICK),
        ws.CrossSpaceClassifier(MEMBERS, **QUICK),
        ws.WassersteinMultilabel(MULTILABEL_MEMBERS, **QUICK),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    return train_test_split(X, names, random_state=0, stratify=names)


def test_members_are_fitted_inside(iris):
    X, X_test, y, y_test = iris
    model = ws.WassersteinClassifier(
        [LogisticRegression(max_iter=500), GaussianNB(), ("svm", LinearSVC())], **QUICK
    ).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    assert model.names_ == ["logisticregression-1", "gaussiannb-2", "svm"]
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert "chosen" in model.learned_.report


def test_members_without_scores_give_hard_answers(iris):
    class Stubborn(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.model_ = GaussianNB().fit(X, y)
            self.classes_ = self.model_.classes_
            return self

        def predict(self, X):
            return self.model_.predict(X)

    X, X_test, y, y_test = iris
    model = ws.WassersteinClassifier([Stubborn(), GaussianNB()], **QUICK).fit(X, y)
    assert model.score(X_test, y_test) > 0.85


def test_frozen_members_are_taken_as_they_are(iris):
    X, X_test, y, y_test = iris
    fitted = GaussianNB().fit(X[:60], y[:60])
    model = ws.WassersteinClassifier(
        [("frozen", FrozenEstimator(fitted)), ("linear", LogisticRegression(max_iter=500))], **QUICK
    ).fit(X[60:], y[60:])
    assert model.members_[0].estimator is fitted
    assert model.score(X_test, y_test) > 0.85


def test_a_table_has_no_answer_to_samples_that_it_does_not_hold():
    table = Predictions("table", ["a", "b"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    member = TableMember(table)
    assert member.predict([["b"], ["c"], ["a"]]).tolist() == ["dog", None, "cat"]


def test_tables_are_members_whose_samples_have_ids(iris):
    _, _, _, y_test = iris
    rng = np.random.default_rng(0)
    classes = ["setosa", "versicolor", "virginica"]
    truth = np.array([classes.index(name) for name in y_test])
    ids = np.array([f"flower {i}" for i in range(len(truth))], dtype=object).reshape(-1, 1)
    tables = []
    for strength in (1.0, 2.0):
        scores = rng.uniform(0.2, 1, size=(len(truth), 3)) + strength * np.eye(3)[truth]
        scores /= scores.sum(axis=1, keepdims=True)
        tables.append(Predictions(f"table {strength:g}", ids.ravel(), classes, scores))
    model = ws.WassersteinClassifier(tables, **QUICK).fit(ids, y_test)
    assert model.score(ids, y_test) > 0.9
    with pytest.raises(InvalidInputError, match="must hold sample ids of 'table 1'"):
        model.predict([["no such flower"]])


def test_an_ensemble_can_be_cloned_piped_and_cross_validated(iris):
    X, _, y, _ = iris
    model = ws.WassersteinClassifier(MEMBERS, **QUICK)
    assert clone(model).get_params()["cv"] == 2
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)
    assert scores.min() > 0.8


def test_set_output_names_the_members_columns(iris):
    X, _, y, _ = iris
    model = ws.WassersteinClassifier(MEMBERS, **QUICK).set_output(transform="pandas").fit(X, y)
    table = model.transform(X)
    assert list(table.columns)[:3] == ["linear_setosa", "linear_versicolor", "linear_virginica"]
    assert table.shape == (len(X), 6)


def test_sample_weight_is_routed_to_those_who_ask_for_it(iris):
    X, _, y, _ = iris
    weight = np.where(y == "setosa", 2.0, 1.0)
    with config_context(enable_metadata_routing=True):
        asking = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        silent = GaussianNB().set_fit_request(sample_weight=False)
        model = ws.WassersteinClassifier([("a", asking), ("b", silent)], **QUICK)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        model.fit(X, y, sample_weight=weight)
        scores = cross_val_score(model, X, y, params={"sample_weight": weight}, cv=2)
    assert scores.min() > 0.8


def test_least_expected_cost_decides_if_costs_are_given(iris):
    X, X_test, y, y_test = iris
    cost = np.array([[0.0, 1, 1], [1, 0, 1], [50, 50, 0]])  # never miss a virginica
    plain = ws.WassersteinClassifier(MEMBERS, **QUICK).fit(X, y)
    careful = ws.WassersteinClassifier(MEMBERS, cost=cost, **QUICK).fit(X, y)
    missed = (careful.predict(X_test)[y_test == "virginica"] != "virginica").sum()
    assert missed <= (plain.predict(X_test)[y_test == "virginica"] != "virginica").sum()
    assert (careful.predict(X_test) == "virginica").sum() >= (y_test == "virginica").sum()


def test_what_was_learned_is_saved_without_pickle(iris, tmp_path):
    X, X_test, y, _ = iris
    fitted = [("nb", FrozenEstimator(GaussianNB().fit(X, y)))]
    fitted.append(("linear", FrozenEstimator(LogisticRegression(max_iter=500).fit(X, y))))
    model = ws.WassersteinClassifier(fitted, **QUICK).fit(X, y)
    model.save(tmp_path / "saved")
    loaded = ws.WassersteinClassifier(fitted, **QUICK).load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
    np.testing.assert_array_equal(loaded.predict(X_test), model.predict(X_test))
    with pytest.raises(InvalidInputError, match="members must be those that were saved"):
        ws.WassersteinClassifier(fitted[:1]).load(tmp_path / "saved")
    unfitted = [("nb", GaussianNB()), ("linear", LogisticRegression())]
    with pytest.raises(InvalidInputError, match="member 'nb' must be fitted"):
        ws.WassersteinClassifier(unfitted).load(tmp_path / "saved")


def test_several_labels_at_once(tmp_path):
    X, y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    members = [
        ("linear", OneVsRestClassifier(LogisticRegression(max_iter=500))),
        ("bayes", OneVsRestClassifier(GaussianNB())),
    ]
    model = ws.WassersteinMultilabel(members, labels=list("abcd"), **QUICK).fit(X, y)
    assert model.predict_proba(X).shape == (200, 4)
    assert set(np.unique(model.predict(X))) <= {0, 1}
    assert (model.predict(X) == y).mean() > 0.75
    assert model.learned_.metric == "mAP"
    with pytest.raises(InvalidInputError, match="a table of 0 and 1"):
        ws.WassersteinMultilabel(members).fit(X, y.sum(axis=1))
    with pytest.raises(InvalidInputError, match="each of the 4 columns of y; got 1"):
        ws.WassersteinMultilabel(members, labels=["a"]).fit(X, y)


def test_a_single_label_is_answered_as_two_classes(tmp_path):
    X, y = make_multilabel_classification(n_samples=200, n_classes=2, random_state=0)
    named = np.where(y[:, 0] == 1, "there", "not there")
    members = [("linear", LogisticRegression(max_iter=500)), ("svm", LinearSVC(random_state=0))]
    model = ws.WassersteinMultilabel(members, **QUICK).fit(X, named)
    assert model.classes_.tolist() == ["not there", "there"]
    assert list(model.target_) == ["there"]
    assert model.predict_proba(X).shape == (200, 2)
    assert model.score(X, named) > 0.75
    table = ws.WassersteinMultilabel(members, **QUICK).fit(X, y[:, :1])
    np.testing.assert_array_equal(table.predict(X) == 1, model.predict(X) == "there")
    frozen = [
        (name, FrozenEstimator(m)) for name, m in zip(model.names_, model.members_, strict=True)
    ]
    model.save(tmp_path / "saved")
    loaded = ws.WassersteinMultilabel(frozen).load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="two classes, with and without the label"):
        ws.WassersteinMultilabel(members).fit(X, np.ones(200))


def test_a_label_that_a_member_never_saw_has_no_score():
    X, y = make_multilabel_classification(n_samples=120, n_classes=3, random_state=0)
    y[:, 1] = 0
    members = [KNeighborsClassifier(), DecisionTreeClassifier(max_depth=3, random_state=0)]
    model = ws.WassersteinMultilabel(members, **QUICK).fit(X, y)
    assert model.transform(X)[:, [1, 4]].max() == 0


def test_margins_of_one_label_say_nothing_of_another():
    X, y = make_multilabel_classification(n_samples=120, n_classes=3, random_state=0)
    model = ws.WassersteinMultilabel([("ridge", RidgeClassifier())], **QUICK).fit(X, y)
    margins = model.members_[0].decision_function(X)
    np.testing.assert_allclose(model.transform(X), 1 / (1 + np.exp(-margins)))


def test_features_may_be_sparse_if_every_member_takes_them():
    assert ws.WassersteinMultilabel(MULTILABEL_MEMBERS).__sklearn_tags__().input_tags.sparse
    assert not ws.WassersteinClassifier(MEMBERS).__sklearn_tags__().input_tags.sparse


def test_unseen_classes_are_reached_through_a_kernel():
    """Zero-shot: classes without a single sample in fit are answered by their attributes."""
    rng = np.random.default_rng(0)
    attributes, classes = [f"a{i}" for i in range(10)], [f"c{i}" for i in range(6)]
    table = np.zeros((10, 6))
    for j in range(6):
        table[rng.choice(10, size=4, replace=False), j] = 1
    truth = rng.integers(6, size=300)
    scores = np.clip(0.7 * table[:, truth].T + rng.uniform(0, 0.4, size=(300, 10)), 0, 1)
    member = Predictions("seen", range(300), attributes, scores, kind="multilabel")
    kernel = ws.kernels.from_attributes(table, attributes, classes)
    ids = np.arange(300).reshape(-1, 1)
    names = np.array(classes)[truth]
    known = truth < 4
    model = ws.CrossSpaceClassifier([member], kernels={"table": kernel}, **QUICK)
    model.fit(ids[known], names[known])
    assert model.classes_.tolist() == classes
    found = model.predict(ids[~known])
    assert (found == names[~known]).mean() > 0.5


# Members and their parameters, by name.


@pytest.mark.parametrize(
    "make", [ws.WassersteinClassifier, ws.CrossSpaceClassifier, ws.WassersteinMultilabel]
)
def test_parameters_of_members_are_parameters(make):
    tree = DecisionTreeClassifier(max_depth=5)
    table = Predictions("table", [0], ["cat"], [[1.0]])
    model = make([("tree", tree), GaussianNB(), table], **QUICK)
    params = model.get_params()
    assert params["tree"] is tree
    assert params["tree__max_depth"] == 5
    assert params["gaussiannb-2__var_smoothing"] == 1e-9
    assert params["table"] is table
    assert set(model.get_params(deep=False)) == set(params) - {
        name for name in params if name.split("__")[0] in ("tree", "gaussiannb-2", "table")
    }
    copied = clone(model).set_params(tree__max_depth=3, cv=4)
    assert copied.get_params()["tree__max_depth"] == 3
    assert copied.cv == 4
    assert tree.max_depth == 5
    other = DecisionTreeClassifier()
    copied.set_params(**{"tree": other, "tree__max_depth": 2, "gaussiannb-2": "drop"})
    assert copied.members[0] == ("tree", other)
    assert other.max_depth == 2
    assert copied.members[1] == ("gaussiannb-2", "drop")
    with pytest.raises(ValueError, match="Invalid parameter 'forest'"):
        model.set_params(forest__max_depth=3)


def test_a_member_that_is_dropped_has_no_say(iris):
    X, X_test, y, _ = iris
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    model = ws.WassersteinClassifier([*MEMBERS, ("tree", tree)], **QUICK).set_params(tree="drop")
    without = ws.WassersteinClassifier(MEMBERS, **QUICK).fit(X, y)
    model.fit(X, y)
    assert model.names_ == ["linear", "bayes"]
    np.testing.assert_array_equal(model.predict_proba(X_test), without.predict_proba(X_test))
    model.set_params(linear="drop", bayes="drop")
    with pytest.raises(InvalidInputError, match="at least one member must take part; got 'drop'"):
        model.fit(X, y)


def test_a_grid_search_tunes_a_member(iris):
    X, X_test, y, y_test = iris
    tree = DecisionTreeClassifier(random_state=0)
    model = ws.WassersteinClassifier([("tree", tree), ("bayes", GaussianNB())], **QUICK)
    grid = {"tree__max_depth": [1, 3], "bayes": [GaussianNB(), "drop"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    depths = [params["tree__max_depth"] for params in search.cv_results_["params"]]
    assert depths == [1, 3, 1, 3]
    best = search.best_estimator_
    assert best.members_[0].max_depth == search.best_params_["tree__max_depth"]
    assert search.score(X_test, y_test) > 0.8
    assert tree.max_depth is None


def test_members_may_be_fitted_at_the_same_time(iris):
    X, X_test, y, _ = iris
    alone = ws.WassersteinClassifier(MEMBERS, **QUICK).fit(X, y)
    with parallel_backend("threading"):
        together = ws.WassersteinClassifier(MEMBERS, n_jobs=2, **QUICK).fit(X, y)
    np.testing.assert_array_equal(together.predict_proba(X_test), alone.predict_proba(X_test))


@pytest.mark.parametrize("dtype", [int, float, "u1"])
def test_classes_may_be_whole_numbers(iris, dtype):
    X, _, names, _ = iris
    _, places = np.unique(names, return_inverse=True)
    y = (places + 3).astype(dtype)
    scores = LogisticRegression(max_iter=500).fit(X, y).predict_proba(X)
    ids = np.arange(len(X))
    table = Predictions("table", ids, [3, 4, 5], scores)
    kernel = pd.DataFrame(np.eye(3), index=[5, 4, 3], columns=[5, 4, 3])
    cost = pd.DataFrame(1 - np.eye(3), index=[3, 4, 5], columns=[3, 4, 5]).loc[[5, 3, 4]]
    model = ws.WassersteinClassifier([table], kernels={"same": kernel}, cost=cost, **QUICK)
    model.fit(ids.reshape(-1, 1).astype(float), y)
    assert model.target_.names == ("3", "4", "5")
    assert model.classes_.dtype == y.dtype
    assert (model.predict(ids.reshape(-1, 1)) == y).mean() > 0.9
    with pytest.raises(InvalidInputError, match=r"row for each class that is true.*none for '5'"):
        model.set_params(cost=cost.drop(index=5)).predict(ids.reshape(-1, 1))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("cv", GaussianNB())], "must not be a parameter of the estimator.*; got 'cv'"),
        ([("a__b", GaussianNB())], "nor have '__' in it; got 'a__b'"),
        ([("a", GaussianNB(), 1.0)], r"of pairs \(name, model\); got \[\('a'"),
        (GaussianNB(), r"of pairs \(name, model\); got GaussianNB"),
        ([], "at least one model"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "different names"),
        ([("a", object())], "must have predict_proba"),
    ],
)
def test_wrong_members_are_refused(iris, members, message):
    X, _, y, _ = iris
    with pytest.raises((InvalidInputError, TypeError), match=message):
        ws.WassersteinClassifier(members, **QUICK).fit(X, y)
