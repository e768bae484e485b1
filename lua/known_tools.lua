-- The built-in tools of coding assistants, and what they do: for tools with neither a policy nor annotations. A name that
-- other servers use for something else is not here. `toolgate words --tools` prints this table; a policy overrides it.
return {
  -- They change nothing.
  reads = {
    "Read", "NotebookRead", "Glob", "Grep", "LS", "WebFetch", "WebSearch",                           -- Claude Code
    "BashOutput", "TaskOutput", "ListMcpResourcesTool", "ReadMcpResourceTool", "LSP", "ToolSearch",
    "read_file", "list_dir", "grep_files", "view_image", "web_search", "list_mcp_resources",         -- Codex
    "list_mcp_resource_templates", "read_mcp_resource",
    "webfetch", "websearch", "codesearch", "lsp_hover", "lsp_diagnostics",                           -- opencode
    "search_files", "list_files", "list_code_definition_names", "access_mcp_resource",               -- Cline, Roo
    "read_files", "search_codebase", "fetch_web_content", "codebase_search", "fetch_instructions",
    "read_many_files", "list_directory", "search_file_content", "grep_search", "google_web_search",  -- gemini-cli
    "get_internal_docs",
    "developer__analyze", "developer__list_windows", "developer__screen_capture",                    -- goose
    "developer__image_processor", "developer__tree", "developer__read", "developer__read_image",
    "file_search", "glob_file_search", "read_lints", "fetch_rules", "web_fetch",                     -- Cursor
    "find_file", "search_dir", "search_file", "view_file",                                           -- SWE-agent
  },
  -- Lists, notes and thoughts that a model keeps for itself: they change nothing that another call could see.
  notes = {
    "TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "EnterPlanMode", "ExitPlanMode", -- Claude Code
    "update_plan",                                                                                   -- Codex
    "todoread", "todowrite",                                                                         -- opencode
    "update_todo_list", "plan_mode_respond", "focus_chain",                                          -- Cline, Roo
    "write_todos", "enter_plan_mode", "exit_plan_mode", "update_topic", "save_memory",               -- gemini-cli
    "todo__todo_write", "todo__todo_read",                                                           -- goose
    "task_tracker", "think",                                                                         -- OpenHands
    "sequentialthinking",                                                                            -- TRAE
    "todo_write", "todo_read",                                                                       -- Cursor
  },
  -- They edit local files, which a shell may change, too.
  edits = {
    "Edit", "MultiEdit", "Write", "NotebookEdit",                                                    -- Claude Code
    "apply_patch",                                                                                   -- Codex, opencode
    "str_replace", "str_replace_editor", "str_replace_based_edit_tool",                              -- the API's editors
    "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace",        -- Cline, Roo
    "write_file",                                                                                    -- gemini-cli
    "developer__text_editor", "developer__edit", "developer__write",                                 -- goose
    "file_editor",                                                                                   -- OpenHands
    "json_edit_tool",                                                                                -- TRAE
    "edit_file", "search_replace", "edit_notebook", "reapply",                                       -- Cursor
  },
  -- They run commands, so they may do anything.
  shells = {
    "Bash", "KillShell", "KillBash", "TaskStop",                                                     -- Claude Code
    "shell", "shell_command", "local_shell", "container.exec", "exec_command", "unified_exec", "write_stdin", -- Codex
    "bash",                                                                                          -- opencode, SWE-agent, TRAE
    "execute_command", "run_commands", "browser_action", "use_mcp_tool",                             -- Cline, Roo
    "run_shell_command",                                                                             -- gemini-cli
    "developer__shell", "computercontroller__automation_script",                                     -- goose
    "execute_bash", "execute_ipython_cell", "terminal",                                              -- OpenHands
    "run_terminal_cmd", "run_terminal_command",                                                      -- Cursor, VS Code
  },
  -- They ask for what is under way: the same call may be made again, up to loop.poll.max.
  polls = { "BashOutput", "TaskOutput", "write_stdin", "read_output", "wait", "get_terminal_output" },
  -- Shell commands that show how far something is; so does one that begins with `sleep N`. The same command may be run again,
  -- up to loop.poll.max, while its output says that something is under way: a count "3/10", "40 %", or one of these states.
  watches = {
    "gh run view", "gh run watch", "gh run list", "gh pr checks", "kubectl get", "kubectl rollout status", "docker ps",
    "docker logs", "docker compose ps", "docker compose logs", "tail", "squeue", "sacct",
  },
  -- The states of what is under way: in a field or behind the word "status" or "state" also of tools that read,
  states = { "running", "pending", "queued", "inprogress", "processing", "starting" }, -- in any case, and "in_progress", too
  -- and in the output of such a command, in this case, as squeue and kubectl write them.
  state_codes = { "PD", "R", "CG", "ContainerCreating" },
  -- They are meant to be made again: the next screen, the next key.
  steps = { "scroll_up", "scroll_down", "browser_action" },
  -- The same of all other tools whose name begins with such a word, behind a server's name, or ends with the others.
  step_verbs = { "press", "scroll", "undo", "redo" },
  step_ends = { "next", "previous", "back", "forward" },
  -- Arguments that say what a call is for, or how long it may take, and do not make it another one: those of every known tool,
  labels = { "explanation", "task_progress", "toolSummary", "toolAction" },
  -- and those of shells, and of any tool with an argument `command`.
  command_labels = {
    "description", "timeout", "timeout_ms", "timeoutMs", "timeout_seconds", "timeout_secs", "yield_time_ms", "justification",
    "explanation", "task_progress",
  },
}
