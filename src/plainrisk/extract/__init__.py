"""Reading fitted logistic classifiers of other libraries as risk forms.

No other library is imported here: a model is known by the name of its class, and its attributes are read.
"""

from plainrisk.extract import additive, trees
from plainrisk.extract.effects import LabelEffect, NumberEffect
from plainrisk.extract.pipelines import read_pipeline, read_search
from plainrisk.extract.reading import Additive, TreeSum
from plainrisk.extract.registry import extract_form, read_form, refuse_type, register_extractor, supported_models

__all__ = [
    "Additive",
    "LabelEffect",
    "NumberEffect",
    "TreeSum",
    "extract_form",
    "register_extractor",
    "supported_models",
]

for _name, _reader in {
    "glum.GeneralizedLinearRegressor": additive.read_glum,
    "glum.GeneralizedLinearRegressorCV": additive.read_glum,
    "interpret.glassbox.ExplainableBoostingClassifier": additive.read_ebm,
    "lightgbm.Booster": trees.read_lightgbm_booster,
    "lightgbm.LGBMClassifier": trees.read_lightgbm_classifier,
    "optbinning.Scorecard": additive.read_optbinning,
    "plainrisk.model.FormMethods": read_form,
    "pygam.GAM": additive.read_logistic_gam,
    "sklearn.ensemble.GradientBoostingClassifier": trees.read_gradient_boosting,
    "sklearn.ensemble.HistGradientBoostingClassifier": trees.read_hist_gradient_boosting,
    "sklearn.linear_model.LogisticRegression": additive.read_linear,
    "sklearn.linear_model.SGDClassifier": additive.read_sgd,
    "sklearn.model_selection.BaseSearchCV": read_search,
    "sklearn.pipeline.Pipeline": read_pipeline,
    "statsmodels.base.model.Results": additive.read_statsmodels,
    "statsmodels.base.wrapper.ResultsWrapper": additive.read_statsmodels,
    "xgboost.Booster": trees.read_xgboost_booster,
    "xgboost.XGBClassifier": trees.read_xgboost_classifier,
}.items():
    register_extractor(_name, _reader)

_VOTES = "it averages the votes of trees, so its log odds are no sum over trees or features."
for _name, _reason in {
    "sklearn.calibration.CalibratedClassifierCV": (
        "calibration bends or averages the probabilities, so they are no longer the sigmoid of a sum over "
        "features. Read the model inside it, before calibration."
    ),
    "sklearn.ensemble.ExtraTreesClassifier": _VOTES,
    "sklearn.ensemble.RandomForestClassifier": _VOTES,
    "sklearn.svm.LinearSVC": "its scores are no log odds. Use LogisticRegression.",
    "statsmodels.base.model.Model": "it is not fitted. Pass the results that model.fit() returns.",
    "sklearn.svm.SVC": "its scores are no log odds, and a kernel mixes the features.",
}.items():
    refuse_type(_name, _reason)
