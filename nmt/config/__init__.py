"""Every key: its type, meaning and bounds; what goes together; what a command line may change."""
