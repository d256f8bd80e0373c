from . import kernels as kernels, scale as scale
from .ensemble import (
    Disagreement as Disagreement,
    Explanation as Explanation,
    Fusion as Fusion,
    FusionAccount as FusionAccount,
    FusionResult as FusionResult,
    explain as explain,
    find_disagreement as find_disagreement,
    fuse as fuse,
)
from .ensemble.estimators import (
    CrossSpaceClassifier as CrossSpaceClassifier,
    TableMember as TableMember,
    WassersteinClassifier as WassersteinClassifier,
    WassersteinMultilabel as WassersteinMultilabel,
)
from .ensemble.learning import (
    Evaluation as Evaluation,
    LearnedEnsemble as LearnedEnsemble,
    evaluate_ensemble as evaluate_ensemble,
    learn_ensemble as learn_ensemble,
)
from .ensemble.learning.kernels import LearnedKernel as LearnedKernel, learn_kernel as learn_kernel
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    InputWarning as InputWarning,
    InvalidInputError as InvalidInputError,
    MissingExtraError as MissingExtraError,
    WassembleError as WassembleError,
)
from .inputs import (
    Aliases as Aliases,
    Embeddings as Embeddings,
    Predictions as Predictions,
    describe_predictions as describe_predictions,
    load_animals as load_animals,
    load_languages as load_languages,
    open_data_set as open_data_set,
    open_predictions as open_predictions,
    read_aliases as read_aliases,
    read_edges as read_edges,
    read_embeddings as read_embeddings,
    read_predictions as read_predictions,
    read_synonyms as read_synonyms,
    read_truth as read_truth,
    write_predictions as write_predictions,
)
from .kernels import (
    Kernel as Kernel,
    LabelledKernel as LabelledKernel,
)
from .labels import LabelSpace as LabelSpace
from .report import write_report as write_report
from .scale import (
    fuse_files as fuse_files,
    fuse_partitions as fuse_partitions,
    fuse_stream as fuse_stream,
)
from .solvers import (
    ARITHMETIC as ARITHMETIC,
    GEOMETRIC as GEOMETRIC,
    HELLINGER as HELLINGER,
    USUAL_RULE as USUAL_RULE,
    Balanced as Balanced,
    Barycenter as Barycenter,
    BarycenterProblem as BarycenterProblem,
    BarycenterResult as BarycenterResult,
    GatedBarycenter as GatedBarycenter,
    GatedMean as GatedMean,
    PowerMean as PowerMean,
    Rule as Rule,
    Single as Single,
    Solver as Solver,
    Status as Status,
    Unbalanced as Unbalanced,
    select_solver as select_solver,
    solve_barycenter as solve_barycenter,
)
from .text import (
    FusedNextWord as FusedNextWord,
    NGramModel as NGramModel,
    Vocabulary as Vocabulary,
    beam_search as beam_search,
    explain_sentence as explain_sentence,
)

__version__: str
