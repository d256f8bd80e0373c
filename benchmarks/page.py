"""docs/benchmarks.md and its plots, from the records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import history
from benchmarks.targets import TARGETS
from paper.record.findings import markdown_table as table
from wassemble._files import write_whole
from wassemble.errors import tell_count

__all__ = ["targets_table", "write"]

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write(records: dict[str, Any]) -> None:
    """Write the page and its plots."""
    _plots(records)
    write_whole(DOCS / "benchmarks.md", _page(records))


def _verdicts(records: dict[str, Any]) -> list[tuple[Any, float, bool]]:
    found = [(target, target.reached(records)) for target in TARGETS]
    return [(target, ratio, target.met(ratio)) for target, ratio in found if ratio is not None]


def targets_table(records: dict[str, Any]) -> str:
    """What must be reached, and what was."""
    rows = [
        [target.name, target.must, f"{ratio:.2f}", "met" if met else "missed"]
        for target, ratio, met in _verdicts(records)
    ]
    return table(["case", "must be", "is", ""], rows)


def _page(records: dict[str, Any]) -> str:
    machine = records["multilabel"]["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    missed = [
        f"- **{target.name}**: {ratio:.2f} where {target.must} is wanted. {target.limit(records)}"
        for target, ratio, met in _verdicts(records)
        if not met
    ]
    parts = [
        "# Benchmarks",
        "Written by `make bench`; do not edit. Contenders take turns in one run after their"
        " answers were found to agree; times are the best of several rounds, and the spread"
        " is how much longer the median was. Only ratios within a run mean much.",
        f"Machine: {machine['n_cores']} cores, {machine['cpu']}, Python {machine['python']};"
        f" {versions}; sweeps: {machine.get('sweeps', 'NumPy')}.",
        "## What must be reached",
        targets_table(records),
        *(["Missed, and why:", "\n".join(missed)] if missed else []),
        "![How each has moved since it was first recorded](benchmarks/history.svg)",
        "By commit, from `benchmarks/history.csv`, to which `make bench` adds. Up is better; the"
        " largest moves have names.",
        *_multilabel(records["multilabel"]),
        *_epsilons(records["epsilons"]),
        *_gradients(records["gradients"]),
        *_ordered(records["ordered"]),
        *_captioning(records["captioning"]),
        *_generation(records["generation"]),
        *_latency(records["latency"]),
        *_heads(records["heads"]),
        *_growth(records["growth"]),
        *_convergence(records["convergence"]),
        *_cliffs(records["cliffs"]),
        *_before(records["before"]),
        *_learning(records["learning"]),
        *_web(records["web"]),
    ]
    return "\n\n".join(parts) + "\n"


def _gradients(record: dict[str, Any]) -> list[str]:
    rows = [
        [
            f"{row['n_samples']:,} x {row['n_sweeps']}",
            row["dtype"],
            f"{row['epsilon']:g}",
            row["mass"],
            f"{1e3 * row['ours']:.1f}",
            f"{1e3 * row['lines']:.1f}",
            f"{row['ours'] / row['lines']:.2f}",
            f"{row['ours, all threads'] / row['lines, all threads']:.2f}",
        ]
        for row in record["rows"]
    ]
    headers = ["samples x sweeps", "type", "epsilon", "mass", "ours (ms)", "torch (ms)", "ratio"]
    return [
        "## Gradients",
        "Consensus of 8 models over 80 labels and its gradient with respect to predictions and"
        " kernel, beside the sweeps as one writes them in torch; milliseconds of the processor on"
        " one thread. The last column is the ratio of times on all threads.",
        table([*headers, "on all threads"], rows),
    ]


def _learning(record: dict[str, Any]) -> list[str]:
    rows = [
        [
            row["task"],
            f"{row['n_samples']:,} x {row['n_models']} x {row['n_target']:,}",
            str(row["n_tried"]),
            f"{row['seconds']:.1f}",
            f"{row['processor_seconds']:.1f}",
            row["chosen"],
        ]
        for row in [*record["rows"], record["budget"] | {"task": "languages, budget of 10 s"}]
    ]
    headers = ["task", "samples x models x labels", "rules tried", "seconds", "of the processor"]
    return [
        "## Learning how to fuse",
        "`learn_ensemble` on the samples to learn from of real tasks, and on a wide one of random"
        " predictions in which each model knows two thirds of the labels.",
        table([*headers, "chosen"], rows),
    ]


def _timings(timings: dict[str, Any], base: str, unit: float = 1.0, name: str = "seconds") -> str:
    reference = timings[base]["seconds"]
    rows = [
        [
            contender,
            f"{t['seconds'] * unit:.3g}",
            f"{100 * t['spread']:.0f} %" if t["n_rounds"] > 1 else "",
            f"{t['seconds'] / reference:.2f}",
        ]
        for contender, t in timings.items()
    ]
    return table(["", name, "spread", f"times {base}"], rows)


def _multilabel(record: dict[str, Any]) -> list[str]:
    paper = record["paper_seconds"]
    beside = ", ".join(
        f"{tell_count(int(sweeps), 'sweep')} {paper[sweeps]['V100']:g} s (V100) and"
        f" {paper[sweeps]['K80']:g} s (K80)"
        for sweeps in paper
    )
    return [
        "## The paper's multi-label test set",
        f"{record['n_samples']:,} samples, 8 models, 80 labels, float32, Algorithm 2 at"
        " epsilon 0.3 and mass_penalty 2. The paper's timing table, on a GPU, sample by"
        f" sample: {beside}.",
        _timings(record["timings"], "dense kernel, 5 sweeps"),
    ]


def _epsilons(record: dict[str, Any]) -> list[str]:
    combinations = record["combinations"]
    sweeps, ones, others = [], [], []
    for name, found in combinations.items():
        for dtype in ("float32", "float64"):
            rows = [row for row in found["sweeps"] if row["dtype"] == dtype]
            cells = [f"{r['ours']:.2f} s, {r['pot'] / r['ours']:.0f}x" for r in rows]
            sweeps.append([name, dtype, *cells])
        one = [f"{1e6 * r['ours']:.0f}, {r['pot'] / r['ours']:.1f}x" for r in found["one"]]
        ones.append([name, *one])
        diagonal, converged = found["diagonal"], found["converged"]
        others.append(
            [
                name,
                f"{diagonal['ours'] / diagonal['mean']:.2f}",
                f"{converged['seconds']:.2f} s, {converged['sweeps']:.0f} sweeps",
                f"{converged['n_converged']:,} of {converged['n_samples']:,}",
            ]
        )
    epsilons = [f"epsilon {row['epsilon']:g}" for row in next(iter(combinations.values()))["one"]]
    return [
        "## Every epsilon, with native sweeps and without",
        f"{record['n_samples']:,} samples, 8 models, 80 labels, squared distances of unit vectors,"
        " 5 sweeps of Algorithm 2 with mass_penalty 2: seconds, and how many times faster than a"
        " loop over POT in the same process.",
        table(["", "", *epsilons], sweeps),
        "One sample, prepared, float32: microseconds, and how many times faster than POT.",
        table(["", *epsilons], ones),
        "A diagonal kernel, converged, times NumPy's geometric mean; and Algorithm 1 at epsilon 0.1"
        " to a tolerance of 1e-6, float64.",
        table(["", "diagonal", "Algorithm 1", "converged"], others),
    ]


def _ordered(record: dict[str, Any]) -> list[str]:
    seconds = record["seconds"]
    rows = [
        [name, f"{each:.2f}", f"{each / seconds['sort']:.2f}"] for name, each in seconds.items()
    ]
    return [
        "## Labels on a line",
        f"{record['n_samples']:,} samples x {record['n_models']} models x {record['n_labels']}"
        " labels, float64, seconds of one thread, beside a sort of the numbers of each sample.",
        table(["", "seconds", "of a sort"], rows),
    ]


def _captioning(record: dict[str, Any]) -> list[str]:
    return [
        "## Next words over a large vocabulary",
        f"{record['n_labels']:,} labels, 5 models x 5 beams, 5 sweeps of Algorithm 1, float32."
        " Truncation to 500 words dropped at most"
        f" {100 * record['dropped_mass']:.0f} % of a model's mass on these made-up"
        " distributions, which are flatter than a captioner's.",
        _timings(record["timings"], "sparse, 50 neighbours", 1e3, "milliseconds"),
    ]


def _generation(record: dict[str, Any]) -> list[str]:
    truncation = record["truncation"]
    same = [
        [f"{row['n_top']:,}", f"{100 * row['same']:.0f} %", f"{100 * row['mean_dropped']:.1f} %"]
        for row in truncation["rows"]
    ]
    return [
        "## A word of fused captioners",
        f"Five LSTM captioners of 512 units with random weights, {record['n_words']:,} words,"
        " beam 5, one image: one step of the models, and with fusing, 5 sweeps of Algorithm 1"
        f" (50 neighbours: {record['entries_per_word']:.0f} entries a word). Processor"
        " time of one thread, for models and fusing; the load of the machine was"
        f" {record['load']:.1f} as it began. Ratios differ by some percent from run to run: a"
        " bound that is met by less may be missed by the next.",
        _timings(record["timings"], "the models alone", 1e3, "milliseconds"),
        f"{len(truncation['models'])} trained captioners ({', '.join(truncation['models'])}),"
        f" {truncation['n_words']:,} words, dense GloVe kernel, beam 5, {truncation['n_images']}"
        " test images: captions with only the likeliest words beside those with all.",
        table(["words that take part", "same caption", "mass dropped, mean"], same),
    ]


def _latency(record: dict[str, Any]) -> list[str]:
    return [
        "## One sample at a time",
        "8 models, 80 labels, 5 sweeps of Algorithm 2. `rule.prepare(kernel, weights)` makes every"
        " check and choice once; a call from scratch makes them again. POT rebuilds the kernel"
        " from the cost in each call, wassemble is given it.",
        _timings(record["timings"], "prepared, float32", 1e6, "microseconds"),
    ]


def _heads(record: dict[str, Any]) -> list[str]:
    names = {name.partition(", ")[2]: None for name in record["timings"]}
    contenders = ("onnxruntime", "head", "fuse", "fuse on NumPy")
    rows = [
        [
            name,
            *(
                f"{1e3 * record['timings'][f'{each}, {name}']['seconds']:.3g}"
                for each in contenders
            ),
        ]
        for name in names
    ]
    return [
        "## Heads",
        "A frozen fusion, 5 sweeps of Algorithm 2, float32, milliseconds of the processor on one"
        " thread: one sample and 2,000 samples of 8 models over 80 labels; 4 samples of 5 models"
        " over 10,000 labels with 50 neighbours each. `head` checks its inputs, `onnxruntime` is"
        " the file alone.",
        table(["", *contenders], rows),
    ]


def _growth(record: dict[str, Any]) -> list[str]:
    samples = table(
        ["samples, streamed", "seconds", "microseconds a sample", "MB gained on the way"],
        [
            [
                f"{row['n_samples']:,}",
                f"{row['seconds']:.3g}",
                f"{row['microseconds_per_sample']:.2f}",
                f"{row['megabytes_gained']:.0f}",
            ]
            for row in record["samples"]
        ],
    )
    labels = table(
        ["labels", "seconds", "seconds, neighbours at random"],
        [
            [f"{row['n_labels']:,}", f"{row['seconds']:.3g}", f"{row['seconds_random']:.3g}"]
            for row in record["labels"]
        ],
    )
    tables = [samples, labels]
    for axis in ("models", "threads"):
        key = f"n_{axis}"
        rows = [[f"{row[key]:,}", f"{row['seconds']:.3g}"] for row in record[axis]]
        tables.append(table([axis, "seconds"], rows))
    return [
        "## Growth",
        "Samples: 8 models, 80 labels, dense. Labels: 5 models x 5 samples, 50 neighbours,"
        " sparse, near in label order. Models: 4,000 samples, 80 labels, dense. Threads: 35,150"
        " samples.",
        "![Time against samples, labels and models](benchmarks/growth.svg)",
        *tables,
    ]


def _convergence(record: dict[str, Any]) -> list[str]:
    names = list(record["rows"][0]["timings"])
    rows = []
    for row in record["rows"]:
        cells = [f"{row['epsilon']:g}"]
        for name in names:
            cells += [f"{row['sweeps'][name]:.0f}", f"{row['timings'][name]['seconds']:.3g}"]
        rows.append([*cells, f"{row['agreement']:.0e}"])
    header = ["epsilon"]
    for name in names:
        header += [f"{name}: sweeps", "seconds"]
    return [
        "## To convergence",
        f"Algorithm 1, float64, {record['n_samples']} samples, 8 models, 80 labels, tolerance"
        f" {record['tolerance']:g}. Each stops by its own rule, so sweeps are not quite alike;"
        " the last column is the largest gap between the answers. POT and OTT stop at 20,000"
        " sweeps.",
        table([*header, "gap"], rows),
        "![Sweeps and seconds against epsilon](benchmarks/convergence.svg)",
    ]


def _cliffs(record: dict[str, Any]) -> list[str]:
    rows = [
        [
            row["case"],
            name,
            f"{row['ratio']:.1f}x",
            f"{row['sweeps']:.0f}",
            f"{100 * row['converged']:.0f} %",
            f"{100 * row['cannot_meet']:.0f} %",
        ]
        for name, found in record["combinations"].items()
        for row in found
    ]
    return [
        "### What is hard to converge",
        f"Default settings (tolerance 1e-6, 1,000 sweeps), {record['n_samples']} samples, 8 models,"
        " 80 labels, float64, one thread: seconds of the processor against those of epsilon .1,"
        " balanced. Rows that sweeps bring along slowly are finished by Newton's method. In a"
        " narrow band there is often no histogram that all models can reach; the last column counts"
        " the rows for which that was proved.",
        table(["case", "sweeps by", "time", "sweeps", "converged", "cannot meet"], rows),
    ]


def _before(record: dict[str, Any]) -> list[str]:
    if not record["seconds"]:
        return []
    cases = {
        "converged": "Algorithm 1 at epsilon .1 to 1e-6, 2,000 samples, float64",
        "words": "five sweeps over 10,096 words, 50 neighbours, 5 models x 5 beams, float32",
        "usual": "epsilon .1 of the table above, 100 samples, one thread",
    }
    before = record["seconds"]["before"]
    rows = [
        [
            title,
            f"{1e3 * before[case]:.3g}",
            *(
                f"{1e3 * found[case]:.3g}, {before[case] / found[case]:.1f}x"
                for name, found in record["seconds"].items()
                if name != "before"
            ),
        ]
        for case, title in cases.items()
    ]
    names = [f"{name} now" for name in record["seconds"] if name != "before"]
    return [
        "### Beside the library as it was",
        f"Before it had native sweeps (commit {record['commit']}), in processes that take turns:"
        " milliseconds, and how many times faster it is now.",
        table(["case", "before", *names], rows),
    ]


def _web(record: dict[str, Any]) -> list[str]:
    kinds = record["kinds"] | {"all": record["all"], "slider alone": record["slider_alone"]}
    rows = [
        [kind, f"{each['n']:,}", *(f"{each[key]:.0f}" for key in ("median", "p95", "max"))]
        for kind, each in kinds.items()
    ]
    errors = ", ".join(f"{n} of status {status}" for status, n in record["errors"].items())
    return [
        "## The web app",
        f"`wassemble serve` and a load generator in a process of its own, both on this machine:"
        f" {record['rate']} requests a second for {record['seconds']} seconds at random times,"
        " sent whether or not earlier ones were answered; a latency counts from the planned"
        f" time. {record['n_raters']} raters took part; every answer that was acknowledged was in"
        " the export afterwards. Pages are the front page, lists and styles; a sample is one of"
        f" the explorer; items and answers are raters'. Errors: {errors or 'none'}."
        f" The server's {record['n_processes']} processes had opened the examples before, and used"
        f" {record['server_cores']:.1f} of {record['n_cores']} cores; the load of the machine was"
        f" {record['load']:.1f} as it began."
        " Slider moves are each to a new place: epsilon, weights or mass_penalty of three models"
        " over 10,000 words, of which the explorer fuses the 500 that some model finds likeliest,"
        " as its page says.",
        table(["request", "number", "median ms", "95th percentile", "longest"], rows),
    ]


def _plots(records: dict[str, Any]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "wassemble"
    folder = DOCS / "benchmarks"
    folder.mkdir(exist_ok=True)
    growth = records["growth"]
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for panel, axis in zip(panels, ("samples", "labels", "models"), strict=True):
        sizes = [row[f"n_{axis}"] for row in growth[axis]]
        seconds = [row["seconds"] for row in growth[axis]]
        panel.loglog(sizes, seconds, "o-", label="measured")
        linear = [seconds[-1] * size / sizes[-1] for size in sizes]
        panel.loglog(sizes, linear, "--", color="grey", label="linear")
        panel.set(xlabel=axis, ylabel="seconds")
        if axis == "models":  # less than two decades: name each size
            panel.set_xticks(sizes, [str(size) for size in sizes])
            panel.minorticks_off()
        panel.legend()
    _save(figure, folder / "growth.svg")
    rows = records["convergence"]["rows"]
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    epsilons = [row["epsilon"] for row in rows]
    for name in rows[0]["timings"]:
        panels[0].loglog(epsilons, [row["sweeps"][name] for row in rows], "o-", label=name)
        seconds = [row["timings"][name]["seconds"] for row in rows]
        panels[1].loglog(epsilons, seconds, "o-", label=name)
    for panel, label in zip(panels, ("sweeps", "seconds"), strict=True):
        panel.set(xlabel="epsilon", ylabel=label)
        panel.invert_xaxis()
    panels[0].legend()
    _save(figure, folder / "convergence.svg")
    history.draw(folder / "history.svg")


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
