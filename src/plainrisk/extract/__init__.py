"""Reading fitted logistic classifiers of other libraries as risk forms.

No other library is imported here: a model is known by the name of its class, and its attributes are read.
"""

from plainrisk.extract.additive import read_ebm, read_glum, read_linear, read_logistic_gam, read_sgd, read_statsmodels
from plainrisk.extract.effects import LabelEffect, NumberEffect
from plainrisk.extract.pipelines import read_pipeline, read_search
from plainrisk.extract.reading import Additive, TreeSum
from plainrisk.extract.registry import extract_form, read_form, refuse_type, register_extractor, supported_models
from plainrisk.extract.scorecards import read_optbinning
from plainrisk.extract.trees import (
    read_gradient_boosting,
    read_hist_gradient_boosting,
    read_lightgbm_booster,
    read_lightgbm_classifier,
    read_xgboost_booster,
    read_xgboost_classifier,
)

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
    "glum.GeneralizedLinearRegressor": read_glum,
    "glum.GeneralizedLinearRegressorCV": read_glum,
    "interpret.glassbox.ExplainableBoostingClassifier": read_ebm,
    "lightgbm.Booster": read_lightgbm_booster,
    "lightgbm.LGBMClassifier": read_lightgbm_classifier,
    "optbinning.Scorecard": read_optbinning,
    "plainrisk.model.FormMethods": read_form,
    "pygam.GAM": read_logistic_gam,
    "sklearn.ensemble.GradientBoostingClassifier": read_gradient_boosting,
    "sklearn.ensemble.HistGradientBoostingClassifier": read_hist_gradient_boosting,
    "sklearn.linear_model.LogisticRegression": read_linear,
    "sklearn.linear_model.SGDClassifier": read_sgd,
    "sklearn.model_selection.BaseSearchCV": read_search,
    "sklearn.pipeline.Pipeline": read_pipeline,
    "statsmodels.base.model.Results": read_statsmodels,
    "statsmodels.base.wrapper.ResultsWrapper": read_statsmodels,
    "xgboost.Booster": read_xgboost_booster,
    "xgboost.XGBClassifier": read_xgboost_classifier,
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
