"""Utilities that know nothing of translation: errors, files, devices, processes."""
