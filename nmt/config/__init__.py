"""The configuration: every key with type, meaning and bounds; how it is checked and overridden."""

from nmt.config.schema import *  # noqa: F403
