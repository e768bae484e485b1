-- The built-in tools of coding assistants, and what they do: for tools with neither a policy nor annotations. A name that
-- other servers use for something else is not here. `toolgate words --tools` prints this table; a policy overrides it.
return {
  -- They change nothing.
  reads = {
    "Read", "NotebookRead", "Glob", "Grep", "LS", "WebFetch", "WebSearch",                           -- Claude Code
    "BashOutput", "TaskOutput", "ListMcpResourcesTool", "ReadMcpResourceTool",
    "read_file", "list_dir", "grep_files", "view_image", "web_search", "list_mcp_resources",         -- Codex
    "list_mcp_resource_templates", "read_mcp_resource",
  },
  -- Lists and notes that a model keeps for itself: they change nothing that another call could see.
  notes = {
    "TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "EnterPlanMode", "ExitPlanMode", -- Claude Code
    "update_plan",                                                                                   -- Codex
  },
  -- They edit local files, which a shell may change, too.
  edits = {
    "Edit", "MultiEdit", "Write", "NotebookEdit",                                                    -- Claude Code
    "apply_patch",                                                                                   -- Codex
    "str_replace", "str_replace_editor", "str_replace_based_edit_tool",                              -- the API's editors
  },
  -- They run commands, so they may do anything.
  shells = {
    "Bash", "KillShell", "KillBash",                                                                 -- Claude Code
    "shell", "shell_command", "local_shell", "container.exec", "exec_command", "unified_exec", "write_stdin", -- Codex
  },
}
