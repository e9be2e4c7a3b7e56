"""The configuration: all keys with type, meaning and bounds; checks and overrides."""
