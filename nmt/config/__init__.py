"""Declares all configuration keys with type, meaning and bounds; checks values and applies overrides."""
