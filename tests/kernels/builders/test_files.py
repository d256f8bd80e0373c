"""A file says how similar labels are; each kind becomes the kernel of its own builder."""

import numpy as np
import pytest

import wassemble as ws
from wassemble.kernels import from_word_vectors
from wassemble.kernels.builders.files import FILE_ORIGINS, read_kernel_origin

LABELS = ws.LabelSpace(["cat", "dog", "car"])
TABLE = "name,cat,dog,car\ncat,2,1,0\ndog,1,2,0\ncar,0,,2\n"
FILES = {
    "embeddings": ("v.txt", "cat 1 0\ndog 0.9 0.3\ncar 0 1\n"),
    "synonyms": ("s.csv", "word,synonym\ncat,dog\n"),
    "tree": ("t.txt", "animal cat\nanimal dog\nthing animal\nthing car\n"),
    "graph": ("g.csv", "cat,dog,1\ndog,car,3\n"),
    "attributes": ("a.csv", TABLE.replace(",,", ",0,")),
    "ratings": ("r.csv", TABLE),
    "costs": ("c.csv", TABLE),
}


@pytest.fixture(params=FILE_ORIGINS)
def named(request, tmp_path):
    name, content = FILES[request.param]
    path = tmp_path / name
    path.write_text(content.replace("name,", "sample,"))
    return request.param, path


def build(name, path, epsilon):
    made = read_kernel_origin(name, path).at(epsilon)
    return made if isinstance(made, ws.LabelledKernel) else made(LABELS, LABELS)


def wanted(name, path, epsilon):
    """The same by the builder that users call."""
    table = np.array([[2, 1, 0], [1, 2, 0], [0, np.nan, 2]])
    builders = {
        "embeddings": lambda: ws.kernels.from_word_vectors(
            LABELS, embeddings=ws.inputs.read_embeddings(path), epsilon=epsilon
        ),
        "synonyms": lambda: ws.kernels.from_synonyms(
            LABELS, synonyms=ws.inputs.read_synonyms(path)
        ),
        "tree": lambda: ws.kernels.from_tree(
            LABELS, edges=ws.inputs.read_edges(path), epsilon=epsilon
        ),
        "graph": lambda: ws.kernels.from_graph(
            LABELS, edges=ws.inputs.read_edges(path), epsilon=epsilon
        ),
        "attributes": lambda: ws.kernels.from_attributes(np.nan_to_num(table), LABELS, LABELS),
        "ratings": lambda: ws.kernels.from_ratings(np.nan_to_num(table), LABELS, LABELS),
        "costs": lambda: ws.kernels.from_cost_table(
            np.nan_to_num(table, nan=np.inf), LABELS, LABELS, epsilon=epsilon
        ),
    }
    return builders[name]()


def test_a_file_gives_the_kernel_of_its_builder(named):
    name, path = named
    found, direct = build(name, path, 0.7), wanted(name, path, 0.7)
    np.testing.assert_array_equal(found.to_dense(), direct.to_dense())
    assert found.source == found.target == LABELS


def test_epsilon_matters_where_there_is_a_cost(named):
    name, path = named
    near, far = (build(name, path, epsilon).to_dense() for epsilon in (0.5, 5.0))
    assert (near != far).any() == read_kernel_origin(name, path).has_cost


@pytest.mark.parametrize("way", ["n_neighbors", "local_bandwidth"])
def test_neighbours_go_with_word_vectors(named, way):
    name, path = named
    if name == "embeddings":
        made = read_kernel_origin(name, path, **{way: 1}).at(1.0)(LABELS, LABELS)
        embeddings = ws.inputs.read_embeddings(path)
        direct = from_word_vectors(LABELS, embeddings=embeddings, epsilon=1.0, **{way: 1})
        np.testing.assert_array_equal(made.to_dense(), direct.to_dense())
        assert (made.to_dense() != build(name, path, 1.0).to_dense()).any()
    else:
        with pytest.raises(ws.InvalidInputError, match=f"`{way}` must go with word vectors"):
            read_kernel_origin(name, path, **{way: 1})


def test_an_unknown_kind_is_named():
    with pytest.raises(ws.InvalidInputError, match="got 'magic'"):
        read_kernel_origin("magic", "x.csv")


@pytest.mark.parametrize("first", ["label", "name", "source", "", "sample"])
def test_the_first_column_of_a_table_names_its_rows(first, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(f"{first},0,1\n0,5,1\n1,1,5\n")
    kernel = build("ratings", path, 1)
    assert kernel.source.names == kernel.target.names == ("0", "1")
    np.testing.assert_array_equal(kernel.to_dense(), [[1, 0.2], [0.2, 1]])
