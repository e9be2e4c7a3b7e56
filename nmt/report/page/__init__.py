"""The comparison page: one HTML file that holds its data, its styles and its programs, and asks no network for anything."""

from nmt.report.page.builder import build_explorer, build_page

__all__ = ["build_explorer", "build_page"]
