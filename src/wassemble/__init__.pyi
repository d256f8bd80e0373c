from . import (
    ensemble as ensemble,
    inputs as inputs,
    kernels as kernels,
    metrics as metrics,
    scale as scale,
    solvers as solvers,
    text as text,
)
from ._versions import show_versions as show_versions
from .ensemble import (
    Fusion as Fusion,
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
    LearnedEnsemble as LearnedEnsemble,
    evaluate_ensemble as evaluate_ensemble,
    learn_ensemble as learn_ensemble,
)
from .ensemble.learning.kernels import learn_kernel as learn_kernel
from .ensemble.without_truth import rank_models as rank_models
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    InputWarning as InputWarning,
    InvalidInputError as InvalidInputError,
    MissingExtraError as MissingExtraError,
    WassembleError as WassembleError,
)
from .inputs import (
    Aliases as Aliases,
    Predictions as Predictions,
    read_aliases as read_aliases,
    read_predictions as read_predictions,
    read_truth as read_truth,
    write_predictions as write_predictions,
)
from .kernels import Kernel as Kernel, LabelledKernel as LabelledKernel
from .labels import LabelSpace as LabelSpace
from .report import write_report as write_report
from .solvers import (
    ARITHMETIC as ARITHMETIC,
    GEOMETRIC as GEOMETRIC,
    HELLINGER as HELLINGER,
    USUAL_RULE as USUAL_RULE,
    Balanced as Balanced,
    Barycenter as Barycenter,
    BarycenterResult as BarycenterResult,
    GatedBarycenter as GatedBarycenter,
    GatedMean as GatedMean,
    LineBarycenter as LineBarycenter,
    PowerMean as PowerMean,
    Rule as Rule,
    Single as Single,
    Status as Status,
    TreeBarycenter as TreeBarycenter,
    Unbalanced as Unbalanced,
    solve_barycenter as solve_barycenter,
)

__version__: str
