-- create_task: creates a task in a project, and the same task only once. Everyone may call it; it writes.
-- Shows: params, a closed schema in five lines of Lua; a budget for identical calls, which keeps a model that repeats
-- itself from making the task twice; and a tool error that names the valid projects.

local projects = {
  ["6b1c9d20-7e4f-4a3b-9c58-2d0f1e7a8b34"] = "Website",
  ["9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11"] = "Garden",
}

local function known_projects()
  local lines = {}
  for id, name in pairs(projects) do lines[#lines + 1] = name .. " is " .. id end
  table.sort(lines)
  return "The projects: " .. table.concat(lines, "; ") .. "."
end

return tool "create_task" {
  title       = "New task",
  description = "Create one task in a project.",
  use_when    = "the user wants to record something to do",
  avoid_when  = "the user only asks which tasks exist",
  effects     = "write",
  retry       = { same_call = 1 },
  ids         = { project_id = shape "uuid" },
  gives_ids   = { "task.id" },

  schema = params {
    title       = str { min = 1, max = 120, "What must be done, in a few words" },
    project_id  = uuid "The project's UUID",
    description = optional(str "Details"),
    due_date    = optional(datetime "The deadline, e.g. 2026-05-08T17:00:00Z"),
  },

  run = function(args)
    local project = projects[args.project_id:lower()]
    if not project then
      return failed("unknown_project", "no project has the id " .. args.project_id, known_projects())
    end
    return { task = { id = "task-1", title = args.title, project = project, due_date = args.due_date } }
  end,

  examples = {
    { "a task with a date",
      args = { title = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11",
               due_date = "2026-05-08T17:00:00Z" },
      gives = "pass" },
    { "the same task is not made twice",
      args = { title = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11" },
      gives = "pass", again = "refuse same_call" },
    { "null for an optional field is dropped",
      args = { title = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11", due_date = null },
      gives = "pass", becomes = { title = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11" } },
    { "all problems are reported at once",
      args = { titel = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11", due_date = "Friday" },
      gives = "repair", says = "did you mean 'title'?" },
    { "a date in words is not a date",
      args = { title = "Prune the roses", project_id = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11", due_date = "tomorrow" },
      gives = "repair", says = "expected ISO datetime" },
    { "an id with a wrong format is refused, not repaired",
      args = { title = "Prune the roses", project_id = "proj-123" }, gives = "refuse fabricated_id" },
    { "a project that does not exist: the error names those that do",
      args = { title = "Prune the roses", project_id = "00000000-0000-4000-8000-000000000000" },
      gives = "tool_error unknown_project", says = "Garden is 9d0e6f52" },
  },
}
