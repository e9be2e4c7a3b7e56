"""What `import nmt` gives to Python and notebooks: trained models, results as frames, heatmaps."""
