"""General utilities that do not depend on translation: errors, files, devices, processes."""
