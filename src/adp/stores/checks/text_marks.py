"""What texts look like that hold a call, an act of an agent, or the output of a tool (RE2)."""

from __future__ import annotations

_IN_TAGS = (
    r"<function=[\w.-]+>|<tool_call>|<function_calls?>|<invoke name=|<use_mcp_tool>"
    r"|<execute(?:_[a-z]+)?>|<\|python_tag\|>|\[TOOL_CALLS?\]|<\|tool_call|<\x{ff5c}tool"
    r"|<functioncall>|<Action>\s*[{\[]|<\|channel\|>commentary to="
    r"|(?:^|\n|</think>)\s*<(?:search|python|web_search|wiki_search|crawl_page)>"
)
_IN_LINES = (
    r"(?:^|\n)\s*(?:Action|ACTION|Act)\s*:\s*[^\s*]|(?:^|\n)Code:\n```"
    r"|(?:^|\n)(?:CLICK|LONG_PRESS) <point>|^\s*THOUGHT:[^`]*```(?:bash|sh|mswea_bash_command)\n"
)
_IN_JSON = (
    r'^\s*(?:```(?:json)?\s*)?\[?\s*\{\s*"(?:name|function|tool|tool_name|action)"\s*:\s*"[^"]+"'
    r'\s*,\s*"(?:arguments|parameters|args|kwargs|params|action_input|tool_input|input)"\s*:'
    r'|^\s*(?:```(?:json)?\s*)?\{\s*"analysis"\s*:'
)
_IN_BRACKETS = r"^\s*\[\s*[\w .:-]+\((?:\)|\s*\w+\s*=)[^\n]*\)\s*\]\s*$"
_IN_BROWSER = (
    r"```\s*(?:click|type|hover|press|scroll|goto|new_tab|tab_focus|close_tab|go_back|go_forward"
    r"|stop|fill|select_option)\b[^\n`]*```\s*$"
)
CALL_IN_TEXT = "|".join((_IN_TAGS, _IN_LINES, _IN_JSON, _IN_BRACKETS, _IN_BROWSER))
"""What a call looks like in a text of the agent (RE2).

Dialects of actions in texts are on a higher floor, so their marks stand here again, and a test
compares them.
"""

IN_SHELL = r"(?:^|\n)```(?:bash|sh|shell|mswea_bash_command)\n[^`]+```\s*$"
"""A block of a shell at the end of a text, which is a call only where the run goes on."""

OUTPUT_BEGINS = (
    r"^\s*(?:# )?(?:OBSERVATION|Observation|observation|Obs|EXECUTION RESULT|Execution result|"
    r"Execution Result|Tool output|Tool Output|Tool result|Tool Result|Function result|"
    r"FUNCTION RESPONSE|API Result|Command output|New Terminal Output|Current Terminal Screen|"
    r"STDOUT|Stdout|stdout)\b[^\n]{0,60}:"
    r"|^\s*<(?:tool_response|tool_result|function_result|function_results|function_response|"
    r"observation|Observation|OBSERVATION|obs|result|returncode|output|information|"
    r"execution_result|environment_details)>"
    r"|^\s*\[TOOL_RESULTS?\]|^\s*\[[a-z_]+\b[^\n]*\] Result:"
    r"|^\s*\[\{.name.: [^\n]{0,200}.results.:"
    r"|^\s*(?:## Return of|# Observation|Previous response had|ToolCall(?:Successful|Error))"
    r"|^\s*<(?:\x{ff5c}tool|\|start\|>(?:functions|browser|python)|\|start_header_id\|>ipython)"
    r"|^\s*The output of the (?:OS|command|code|program)\b|^\s*Out\[\d+\]:"
)
"""How output of a tool begins that was put into a text: what the dialects of actions in texts call
results, among others."""

ACTS = (
    r"<(?:function|tool_call|execute|invoke|use_mcp_tool|search|python|Action|web_search|solution"
    r"|answer|FINAL)"
    r"|(?:^|\n)\s*(?:Action|ACTION|Act|API Name|Final Answer):|```|\[TOOL_CALL|^\s*\[[\w .:-]+\("
    r'|"commands"\s*:|<\||<\x{ff5c}tool'
)
"""Signs of an act in an agent's text, or of an answer that an environment judges."""
