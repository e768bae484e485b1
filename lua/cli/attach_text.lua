-- What `toolgate attach` makes of a client's file, and back: from text to text.
--
-- A plan: { text, servers = { [NAME] = { { name, JSON of the entry }, … } }, sections = { [NAME] = id of its section },
-- notes }.
local clients = require "clients"
local jsonc = require "jsonc"
local toml = require "toml"
local ui = require "ui"
local attach_text = {}

local UPSTREAM_NAME_MAX = 32

local function is_toml(path) return path:find "%.toml$" ~= nil end

-- Names of upstreams are one list for all files.
local function upstream_name(wanted, taken)
  local plain = wanted:gsub("[^%w_-]", "_"):sub(1, UPSTREAM_NAME_MAX - 4)
  local name, n = plain == "" and "server" or plain, 1
  while taken[name] do n = n + 1 name = plain .. "_" .. n end
  taken[name] = true
  return name
end

local function free_key(has)
  local key, n = "toolgate", 1
  while has[key] do n = n + 1 key = "toolgate_" .. n end
  return key
end

local function section_of(text, cwd, id)
  local root = assert(jsonc.read(text))
  for _, section in ipairs(clients.sections(root, cwd)) do
    if section.id == id then return section end
  end
end

local function keys_of(value)
  local has = {}
  for _, item in ipairs(value.list) do has[item.key] = true end
  return has
end

local function move(plan, name, key, converted, taken)
  local list = plan.servers[name] or {}
  plan.servers[name] = list
  table.insert(list, 1, { upstream_name(key, taken), cli.json(converted) }) -- they come from the end
end

local function stays(plan, key, why)
  if why then plan.notes[#plan.notes + 1] = ("%s stays in the client's file: %s"):format(key, why) end
end

local function attach_json(plan, cwd, given)
  local root, why = jsonc.read(plan.text)
  if not root then return nil, why end
  for _, seen in ipairs(clients.sections(root, cwd)) do
    local name
    for i = #seen.value.list, 1, -1 do -- from the end: what is before it stays where it is
      local section = section_of(plan.text, cwd, seen.id)
      local item = section.value.list[i]
      local entry = jsonc.decode(plan.text, item.value)
      local converted, reason = clients.convert(entry, plan.text:sub(item.value.from, item.value.to - 1), section.cwd)
      if converted then
        name = name or given.name(seen.id)
        move(plan, name, item.key, converted, given.taken)
        plan.text = jsonc.remove(plan.text, section.value, i)
      else
        stays(plan, item.key, reason)
      end
    end
    if name then
      local section = section_of(plan.text, cwd, seen.id)
      local words = cli.quote(free_key(keys_of(section.value))) .. ": "
                    .. clients.entry(seen.style, given.program, clients.words(given.client, name))
      plan.text, plan.sections[name] = jsonc.insert(plan.text, section.value, words), seen.id
    end
  end
  return plan
end

local function cut(text, spans)
  table.sort(spans, function(a, b) return a.from > b.from end)
  for _, span in ipairs(spans) do text = jsonc.splice(text, span.from, span.to, "") end
  return text
end

local function attach_toml(plan, cwd, given)
  local statements, why = toml.read(plan.text)
  if not statements then return nil, why end
  local found, order = toml.tables(plan.text, statements, "mcp_servers")
  local spans, name, first = {}, nil, nil
  for i = #order, 1, -1 do
    local key = order[i]
    local one, raw = found[key], ""
    for _, span in ipairs(one.spans) do raw = raw .. span.text end
    local converted, reason = clients.convert(one.entry, raw, cwd)
    if converted then
      name = name or given.name "mcp_servers"
      move(plan, name, key, converted, given.taken)
      for _, span in ipairs(one.spans) do
        spans[#spans + 1] = span
        first = (not first or span.from < first.from) and span or first
      end
    else
      stays(plan, key, reason)
    end
  end
  if not name then return plan end
  local key = free_key(found)
  local is_table = first.text:find "^%s*%["
  local list = "[" .. clients.words(given.client, name) .. "]"
  local words = is_table and ("[mcp_servers.%s]\ncommand = %s\nargs = %s\n"):format(key, cli.quote(given.program), list)
                or ("%s%s = { command = %s, args = %s }\n"):format(
                  first.text:match "^%s*mcp_servers%s*%." and "mcp_servers." or "", key, cli.quote(given.program), list)
  local at = first.from
  local text = cut(plan.text, spans)
  plan.text, plan.sections[name] = jsonc.splice(text, at, at, words), "mcp_servers"
  return plan
end

-- given: path, client, cwd, program, name (a function: the section's NAME), taken (names of upstreams). Nil and what is wrong.
function attach_text.servers(text, given)
  local plan = { text = text, servers = {}, sections = {}, notes = {} }
  if is_toml(given.path) then return attach_toml(plan, given.cwd, given) end
  return attach_json(plan, given.cwd, given)
end

-- ---- and back, where the client has changed the file ----

local function detach_json(text, original, name, id, cwd)
  local section = section_of(text, cwd, id)
  local before = section_of(original, cwd, id)
  for i, item in ipairs(section and section.value.list or {}) do
    local ours, its = clients.is_toolgate(jsonc.decode(text, item.value))
    if ours and its == name then
      text = jsonc.remove(text, section.value, i)
      for _, old in ipairs(before and before.value.list or {}) do
        section = section_of(text, cwd, id)
        if not keys_of(section.value)[old.key] then
          text = jsonc.insert(text, section.value, original:sub(old.from, old.value.to - 1), true)
        end
      end
      return text
    end
  end
  return text
end

local function detach_toml(text, original, name)
  local found = toml.tables(text, assert(toml.read(text)), "mcp_servers")
  local old, order = toml.tables(original, assert(toml.read(original)), "mcp_servers")
  for _, one in pairs(found) do
    local ours, its = clients.is_toolgate(one.entry)
    if ours and its == name then
      local back = {}
      for _, key in ipairs(order) do
        for _, span in ipairs(found[key] and {} or old[key].spans) do back[#back + 1] = span.text end
      end
      local at = one.spans[1].from
      return jsonc.splice(cut(text, one.spans), at, at, table.concat(back))
    end
  end
  return text
end

-- The text without what attach put there, and with what it took away. `about`: the record. Nil and what is wrong.
function attach_text.detach(text, original, about, path, cwd)
  local read, detach = jsonc.read, detach_json
  if is_toml(path) then read, detach = toml.read, detach_toml end
  local good, why = read(text)
  if not good then return nil, why end
  for name, id in pairs(about.sections) do text = detach(text, original, name, id, cwd) end
  return about.hook and attach_text.without_hooks(text, about.hook) or text
end

-- ---- hooks ----

local function hooks_of(text)
  local root, why = jsonc.read(text)
  if not root then return nil, why end
  return jsonc.get(root, "hooks"), root
end

-- `hooks`: a list of { event, the JSON of its list }, as hook_answer makes it.
function attach_text.hooks(text, hooks)
  if not text:find "%S" then text = "{}\n" end
  local value, root = hooks_of(text)
  if not value and type(root) ~= "table" then return nil, root end
  if root.kind ~= "object" or (value and value.kind ~= "object") then return nil, "expected an object with hooks" end
  if not value then
    text = jsonc.insert(text, root, '"hooks": {}', true)
  end
  for _, row in ipairs(hooks) do
    value = hooks_of(text)
    local list = jsonc.get(value, row[1])
    if list and list.kind ~= "array" then return nil, ("hooks.%s: expected a list"):format(row[1]) end
    text = list and jsonc.insert(text, list, row[2]:match "^%[(.*)%]$", true)
           or jsonc.insert(text, value, cli.quote(row[1]) .. ": " .. row[2], true)
  end
  return text
end

-- Takes out each group with this command.
function attach_text.without_hooks(text, command)
  local value = hooks_of(text)
  for e = value and value.kind == "object" and #value.list or 0, 1, -1 do
    local event = value.list[e].value
    for i = event.kind == "array" and #event.list or 0, 1, -1 do
      local group = jsonc.decode(text, event.list[i].value)
      for _, one in ipairs(ui.table(ui.table(group).hooks)) do
        if ui.table(one).command == command then
          text = #event.list == 1 and jsonc.remove(text, value, e) or jsonc.remove(text, event, i)
          value = hooks_of(text)
          event = value.list[e] and value.list[e].value or { list = {}, kind = "array" }
          break
        end
      end
    end
  end
  return text
end

return attach_text
