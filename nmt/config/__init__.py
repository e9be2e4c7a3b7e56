"""The configuration: all keys with type, meaning and bounds; checks and overrides."""

from nmt.config.commands import *  # noqa: F403
from nmt.config.schema import *  # noqa: F403
