"""Curves over the length of the sentence."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from nmt.evaluation.scores import REGISTERED
from nmt.report.finding import read_run
from nmt.report.lengths import caption, details_figure, lengths_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import COLOURS, draw_figure, style
from nmt.utils.errors import InputError
from tests.helpers.run_folders import make_run


def run_of(buckets, label="RNNsearch-50", **result):
    test = {"pairs": 90, "bucket_by": "source", "search": {"beam_size": 12}, "by_length": buckets}
    known = {key: score.description() for key, score in REGISTERED.items()}
    return FinishedRun(
        label, {"config": {"seed": 1}, "test": {"dev": {**test, **result}}, "scores": known}
    )


def bucket(low, high, score, sentences=30, **more):
    ends = {"low": score - 2, "high": score + 3} if score is not None else {}
    return {"from": low, "to": high, "score": score, "sentences": sentences, **ends, **more}


def each(*runs):
    """A line for each run."""
    return {run.label: [run] for run in runs}


def test_a_legend_of_long_names_has_as_many_columns_as_fit():
    runs = [run_of([bucket(1, 10, 5.0)], f"a run with a rather long name {n}") for n in range(4)]
    with style():
        narrow = lengths_figure(each(*runs), "dev", width=3.0, captioned=False)
        wide = lengths_figure(each(*runs), "dev", width=12.0)
    assert [figure.legends[0]._ncols for figure in (narrow, wide)] == [1, 4]
    assert narrow.get_figwidth() == 3.0
    assert narrow.get_supxlabel() == ""


def test_curves_bands_and_counts_are_those_of_the_results(tmp_path):
    run = read_run(make_run(tmp_path / "0", pairs=60, kept=12))
    buckets = run.results["test"]["newstest"]["by_length"]
    with style():
        figure = lengths_figure(each(run), "newstest")
    curves, known, counts, known_counts = figure.axes
    for axes, entries in ((curves, buckets), (known, [b["no_unk"] for b in buckets])):
        assert axes.lines[0].get_ydata() == pytest.approx([e["score"] for e in entries])
        lower, upper = axes.dataLim.y0, axes.dataLim.y1
        assert upper == pytest.approx(max(e["high"] for e in entries))
        assert lower == pytest.approx(min(e["low"] for e in entries))
    assert [bar.get_height() for bar in counts.patches] == [b["sentences"] for b in buckets]
    written = [bar.get_height() for bar in known_counts.patches]
    assert written == [b["no_unk"]["sentences"] for b in buckets]
    assert [label.get_text() for label in counts.get_xticklabels()][:2] == ["1-10", "11-20"]


def test_a_bucket_that_a_run_lacks_is_a_gap_not_a_zero():
    first = run_of([bucket(1, 10, 50.0), bucket(11, 20, 40.0), bucket(21, None, 10.0, 5)])
    second = run_of([bucket(1, 10, 30.0), bucket(21, None, 20.0, 7)], "other")
    with style():
        curves, counts = lengths_figure(each(first, second), "dev").axes
    assert curves.lines[0].get_ydata().tolist() == [50.0, 40.0, 10.0]
    np.testing.assert_array_equal(curves.lines[1].get_ydata(), [30.0, np.nan, 20.0])
    assert [text.get_text() for text in counts.texts] == ["30", "0–30", "5–7"]
    assert [to_rgb(line.get_color()) for line in curves.lines] == list(map(to_rgb, COLOURS[:2]))
    assert len({line.get_marker() for line in curves.lines}) == 2


def test_the_band_of_several_seeds_is_their_standard_deviation(tmp_path):
    seeds = [
        run_of([bucket(1, 10, score), *more], f"a seed {score}")
        for score, more in ((50.0, [bucket(11, 20, 8.0)]), (44.0, []), (44.0, []))
    ]
    alone = run_of([bucket(1, 10, 30.0)], "b")
    with style():
        curves, counts = lengths_figure({"a": seeds, "b": [alone]}, "dev").axes
    assert curves.lines[0].get_ydata().tolist() == [46.0, 8.0]
    band = curves.collections[0].get_paths()[0].vertices
    middle, deviation = 46.0, np.std([50, 44, 44], ddof=1)
    assert {*np.round(band[:, 1], 6)} == {*np.round([middle - deviation, middle + deviation], 6)}
    assert [text.get_text() for text in counts.texts] == ["30", "0–30"]
    assert caption({"a": seeds, "b": [alone]}, "dev").split("; ")[1] == (
        "bands: one standard deviation about the mean over seeds, "
        "or for a single run 95 % bootstrap intervals"
    )
    assert "bootstrap" not in caption({"a": seeds}, "dev")


def test_a_long_legend_makes_the_figure_higher():
    lines = {
        f"a run with a rather long name {n}": [run_of([bucket(1, 10, 5.0)])] for n in range(24)
    }
    with style():
        few, many = (
            lengths_figure(dict(list(lines.items())[:count]), "dev", width=5.5, captioned=False)
            for count in (2, 24)
        )
        panels = []
        for figure in (few, many):
            figure.draw_without_rendering()
            panels.append(figure.axes[0].get_position().height * figure.get_figheight())
    assert many.get_figheight() > few.get_figheight() + 1
    assert panels[1] > 0.9 * panels[0]


def test_no_intervals_and_a_single_bucket():
    bare = {"from": 1, "to": 10, "score": 3.0, "low": None, "high": None, "sentences": 4}
    with style():
        curves, _ = lengths_figure(each(run_of([bare])), "dev").axes
        assert curves.lines[0].get_ydata().tolist() == [3.0]


def test_caption_names_set_bands_and_search():
    run = run_of([], search={"beam_size": 5, "length_penalty": 0.6, "max_ratio": 3.0})
    assert caption(each(run), "dev") == (
        "dev, 90 pairs; bands: 95 % bootstrap intervals; "
        "search: beam 5, length penalty 0.6, at most ×3"
    )
    greedy = run_of([], "other", search={"beam_size": 1, "replace_unk": "copy"})
    assert caption(each(run, greedy), "dev").endswith("at most ×3 or greedy, <unk> replaced (copy)")


def test_details_show_what_the_runs_have():
    def alone(score):
        return {"score": score, "low": None, "high": None}

    aligned = {"alignment_error_rate": alone(0.25), "nll_per_word": alone(1.5)}
    runs = [
        run_of([bucket(1, 10, 9.0, brevity_penalty=alone(0.8))], "a"),
        run_of([bucket(1, 10, 9.0, brevity_penalty=alone(0.9), **aligned)], "b"),
    ]
    with style():
        nll, brevity, errors = details_figure(each(*runs), "dev").axes
        assert details_figure(each(run_of([bucket(1, 10, 9.0)])), "dev") is None
    assert [axes.get_title() for axes in (nll, brevity, errors)] == [
        "NLL a word (nats)",
        "Brevity penalty",
        "Alignment error rate",
    ]
    assert [line.get_ydata().tolist() for line in brevity.lines] == [[0.8], [0.9]]
    assert errors.lines[1].get_ydata().tolist() == [0.25]


def test_an_unknown_format_is_refused(tmp_path):
    run = run_of([bucket(1, 10, 9.0)])
    with pytest.raises(InputError, match=r"f\.gif must end in one of \.png, \.svg, \.pdf"):
        draw_figure(lambda: lengths_figure(each(run), "dev"), tmp_path / "f", ["gif"])


def test_a_label_that_begins_with_an_underscore_is_in_the_legend(tmp_path):
    run = run_of([bucket(1, 10, 9.0)], "_mine")
    [file] = draw_figure(lambda: lengths_figure(each(run), "dev"), tmp_path / "f", ["svg"])
    assert "_mine" in file.read_text()


def test_no_fitted_line_is_told_of_where_there_is_none():
    bare = run_of(
        [bucket(1, 10, 30.0), bucket(11, None, 20.0)], degradation={"bleu": {"line": None}}
    )
    assert "dotted" not in caption(each(bare), "dev")
    assert fits_of(bare) == []


def fits_of(run):
    """Score by place on the axis, of each dotted line."""
    lines = lengths_figure(each(run), "dev").axes[0].lines
    return [
        dict(zip(*np.round(drawn.get_data(), 6).tolist(), strict=True))
        for drawn in lines
        if drawn.get_linestyle() == ":"
    ]
