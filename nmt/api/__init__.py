"""The Python interface, `import nmt`: trained models, results as data frames, heatmaps."""
