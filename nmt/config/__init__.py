"""The configuration: every key with type, meaning and bounds; validation; overrides."""

from nmt.config.data import DataConfig, FilterConfig, TextConfig, TokenizerConfig
from nmt.config.evaluation import (
    EvaluationConfig,
    PageConfig,
    PhraseBasedConfig,
    ReportConfig,
    SearchConfig,
    StressConfig,
)
from nmt.config.model import ModelConfig
from nmt.config.schema import (
    BaselineConfig,
    CompareConfig,
    Config,
    EvaluateConfig,
    ScoreConfig,
    TrainConfig,
    TranslateConfig,
)
from nmt.config.training import OptimizerConfig

__all__ = [
    "BaselineConfig",
    "CompareConfig",
    "Config",
    "DataConfig",
    "EvaluateConfig",
    "EvaluationConfig",
    "FilterConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PageConfig",
    "PhraseBasedConfig",
    "ReportConfig",
    "ScoreConfig",
    "SearchConfig",
    "StressConfig",
    "TextConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TranslateConfig",
]
