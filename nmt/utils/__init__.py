"""What knows nothing of translation: errors, files, devices, the environment, optional packages."""
