"""Graphs of tools, as language models write them: refused with every fault, or a plan."""

from typing import Any

import pytest

from agent_run.contract.faults import Broken
from agent_run.contract.toolgraph import Tool, graph_faults, plan_of_graph

CATALOGUE = {
    tool.name: tool
    for tool in (
        Tool("Text Downloader", frozenset({"url"}), frozenset({"text"})),
        Tool("Text-to-Audio", frozenset({"text"}), frozenset({"audio"})),
        Tool("Video Editor", frozenset({"video", "audio"}), frozenset({"video"})),
    )
}


def graph(nodes: list[str], links: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "user_request": "make a video",
        "task_nodes": [{"task": node, "arguments": ["x"]} for node in nodes],
        "task_links": [{"source": source, "target": target} for source, target in links],
    }


def test_a_good_graph_becomes_a_plan_whose_needs_are_its_links() -> None:
    document = graph(
        ["Text Downloader", "Text-to-Audio", "Video Editor"],
        [("Text Downloader", "Text-to-Audio"), ("Text-to-Audio", "Video Editor")],
    )

    plan = plan_of_graph(document, CATALOGUE)

    assert [(step.task_id, step.needs) for step in plan.steps] == [
        ("text-downloader", ()),
        ("text-to-audio", ("text-downloader",)),
        ("video-editor", ("text-to-audio",)),
    ]


def test_every_fault_is_named_at_once() -> None:
    document = graph(
        ["Text Downloader", "Time Machine", "Video Editor"],
        [
            ("Text Downloader", "Video Editor"),
            ("Video Editor", "Text Downloader"),
            ("Ghost", "Video Editor"),
        ],
    )

    assert graph_faults(document, CATALOGUE) == [
        "task_nodes[1].task: is 'Time Machine', expected a tool of the catalogue",
        "task_links[0]: 'Text Downloader' gives text, 'Video Editor' takes audio or video",
        "task_links[1]: 'Video Editor' gives video, 'Text Downloader' takes url",
        "task_links[2].source: is 'Ghost', expected one of the nodes",
        (
            "task_links: wait for each other in a circle: "
            "Text Downloader -> Video Editor -> Text Downloader"
        ),
    ]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"task_nodes": []},
        {"task_nodes": "Text Downloader"},
        {"task_nodes": [{"tool": "Text Downloader"}]},
        {"task_nodes": [{"task": "Text Downloader"}], "task_links": [{"source": "x"}]},
    ],
)
def test_what_is_no_graph_is_refused_with_its_place(document: dict[str, Any]) -> None:
    faults = graph_faults(document, CATALOGUE)

    assert faults
    assert all(fault.startswith("task_") for fault in faults)
    with pytest.raises(Broken):
        plan_of_graph(document, CATALOGUE)


def test_a_tool_called_twice_makes_links_ambiguous() -> None:
    document = graph(["Text Downloader", "Text Downloader"], [])

    assert graph_faults(document, CATALOGUE) == [
        "task_nodes: call 'Text Downloader' 2 times, so that links to it are ambiguous"
    ]
