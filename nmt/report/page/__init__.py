"""The comparison page: one HTML file with its data, styles and programs inside, and no network."""

from nmt.report.page.builder import build_page

__all__ = ["build_page"]
