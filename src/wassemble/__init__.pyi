from . import scale as scale
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
    load_ensemble as load_ensemble,
    save_ensemble as save_ensemble,
)
from .ensemble.learning.kernel_learning import learn_kernel as learn_kernel
from .ensemble.learning.learned_kernel import LearnedKernel as LearnedKernel
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
    AutoEpsilon as AutoEpsilon,
    DenseKernel as DenseKernel,
    DiagonalKernel as DiagonalKernel,
    IdentityKernel as IdentityKernel,
    Kernel as Kernel,
    KernelAccount as KernelAccount,
    LabelledKernel as LabelledKernel,
    LowRankKernel as LowRankKernel,
    MatchKernel as MatchKernel,
    SparseKernel as SparseKernel,
    distance_to_identity as distance_to_identity,
    kernel_from_attributes as kernel_from_attributes,
    kernel_from_confusion as kernel_from_confusion,
    kernel_from_cooccurrence as kernel_from_cooccurrence,
    kernel_from_cost as kernel_from_cost,
    kernel_from_cost_table as kernel_from_cost_table,
    kernel_from_embeddings as kernel_from_embeddings,
    kernel_from_graph as kernel_from_graph,
    kernel_from_names as kernel_from_names,
    kernel_from_ratings as kernel_from_ratings,
    kernel_from_spelling as kernel_from_spelling,
    kernel_from_synonyms as kernel_from_synonyms,
    kernel_from_tree as kernel_from_tree,
    kernel_from_word_vectors as kernel_from_word_vectors,
    load_kernel as load_kernel,
    mix_kernels as mix_kernels,
    top_label_kernel as top_label_kernel,
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
