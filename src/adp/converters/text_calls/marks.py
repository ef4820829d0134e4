"""The marks of the dialects that may be chosen automatically, as data.

They are those of the dialects themselves, copied, so that a file of chats without a mark is seen to
have no actions before any dialect is imported. A test compares them.
"""

from __future__ import annotations

from functools import cache

from adp.converters.text_calls.registry import DIALECTS, dialect

_MARKS: dict[str, tuple[str, ...]] = {
    'function_xml': ('<function=', 'invoke name='),
    'rlla': ('<tool_call>', '<response>'),
    'hermes': ('<tool_call>', '<answer>'),
    'alfworld': ('ACTION:', '> go to', '> take', '> put', '> move', '> open', '> close', '> heat', '> cool', '> clean', '> slice', '> examine', '> use', '> toggle', '> look', '> inventory', '> think:'),
    'webshop': ('search[', 'click[', 'Search[', 'Click[', 'think['),
    'agentinstruct_os': ('Act:',),
    'agentinstruct_db': ('Action: Operation', 'Action: Answer', 'Action:Operation', 'Action:Answer'),
    'agentinstruct_kg': ('get_relations(', 'get_neighbors(', 'intersection(', 'get_attributes(', 'argmax(', 'argmin(', 'count(', 'Final Answer: #'),
    'mind2web': ('Answer:', ' -> CLICK', ' -> TYPE', ' -> SELECT', ' -> HOVER', ' -> ENTER'),
    'ui_tars': ('click(', 'left_double(', 'left_single(', 'right_single(', 'double_click(', 'drag(', 'hotkey(', 'type(', 'scroll(', 'wait(', 'finished(', 'call_user(', 'long_press(', 'open_app(', 'press_home(', 'press_back(', 'select(', 'hover(', 'swipe(', 'press_enter(', 'press(', 'release(', 'navigate(', 'navigate_back(', 'release_key(', 'press_key(', 'error_env('),
    'webarena': ('```', '<action>', 'click(', 'dblclick(', 'hover(', 'fill(', 'type(', 'press(', 'focus(', 'clear(', 'check(', 'uncheck(', 'select_option(', 'drag_and_drop(', 'upload_file(', 'scroll(', 'mouse_move(', 'mouse_click(', 'mouse_dblclick(', 'mouse_down(', 'mouse_up(', 'mouse_drag_and_drop(', 'mouse_upload_file(', 'keyboard_press(', 'keyboard_down(', 'keyboard_up(', 'keyboard_type(', 'keyboard_insert_text(', 'goto(', 'go_back(', 'go_forward(', 'new_tab(', 'tab_close(', 'tab_focus(', 'noop(', 'send_msg_to_user(', 'report_infeasible('),
    'webvoyager': ('Action:',),
    'mobile': ('<point>[[', 'SCROLL [', 'TYPE [', 'OPEN_APP [', 'PRESS_BACK', 'PRESS_HOME', 'PRESS_ENTER', 'PRESS_RECENT', 'ENTER', 'WAIT', 'COMPLETE', 'IMPOSSIBLE'),
    'cognitive_kernel': ('Code:',),
    'pyautogui': (),
    'lumos': (),
    'swe_agent': (),
    'python_calls': (),
    'react': ('Action:', 'Action 1', 'Action 2', 'Action 3', 'Action 4', 'Action 5', 'Action 6', 'Action 7', 'Action 8', 'Action 9', 'Final Answer', 'API Name'),
    'glaive': ('<functioncall>',),
    'toolace': (')]', ') ]'),
    'codeact': ('<execute', '<solution>'),
    'mini_swe': ('```bash', '```sh', '```mswea_bash_command', '<function=submit>'),
    'search_tags': ('<search>', '<python>', '<answer>'),
    'afm_tags': ('<web_search>', '<wiki_search>', '<crawl_page>', '<code>', '<visual_inspector>', '<plan>', '<reflection>', '<double_check>', '<suggested_answer>', '<answer>'),
    'mcp_xml': ('</execute_command>', '</read_file>', '</write_to_file>', '</replace_in_file>', '</apply_diff>', '</insert_content>', '</search_and_replace>', '</edit_file>', '</search_files>', '</list_files>', '</list_code_definition_names>', '</browser_action>', '</use_mcp_tool>', '</access_mcp_resource>', '</ask_followup_question>', '</attempt_completion>', '</new_task>', '</condense>', '</new_rule>', '</plan_mode_respond>', '</plan_mode_response>', '</act_mode_respond>', '</load_mcp_documentation>', '</report_bug>', '</web_fetch>', '</web_search>', '</use_skill>', '</use_subagents>', '</generate_image>', '</switch_mode>', '</fetch_instructions>', '</codebase_search>', '</update_todo_list>', '</run_slash_command>', '</focus_chain>', '</generate_explanation>', '</delete_file>'),
    'terminus': ('"commands"', '<commands>', '"task_complete"'),
    'tool_call_brackets': ('[TOOL_CALL]', '[TOOL_CALLS]'),
    'm3': ('<Action>', '<ACTION>', '<tool_call>', '[TOOL_CALLS]', '<|tool_call|>', '<FINAL>', '</think>{', '</think>\n', '</think> ', '</Thought>'),
    'llama_python_tag': ('<|python_tag|>', '<function='),
    'kimi_tags': ('<|tool_call_begin|>',),
    'deepseek_tags': ('<｜tool▁call▁begin｜>',),
    'harmony_text': ('<|message|>',),
    'json_actions': (),
    'fenced_code': (),
}
"""Dialect -> its marks; those that are not chosen automatically have none here."""


@cache
def automatic_marks() -> dict[str, tuple[str, ...]]:
    """Dialect -> its marks, of those that may be chosen automatically, in their order."""
    results: dict[str, tuple[str, ...]] = {}
    for name in DIALECTS:
        marks = _MARKS.get(name)
        if marks is None:  # one that is not copied yet
            grammar = dialect(name)
            marks = grammar.marks if grammar.automatic else ()
        if marks:
            results[name] = marks
    return results
