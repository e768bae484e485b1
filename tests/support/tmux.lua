-- A terminal for full-screen programs: a tmux server of its own with one window, in which an interactive shell runs.
-- Specs type lines and keys, and wait until the screen shows what they expect.
local process = require "process"

local M = { running = {} }
local terminal = {}
terminal.__index = terminal

function terminal:tmux(...)
  return process.run { "tmux", "-S", self.directory .. "/tmux", "-f", "/dev/null", ... }
end

-- A program that its terminal's end interrupts while it looks for leaks spins for ever.
local NO_LEAKS = "ASAN_OPTIONS=detect_leaks=0"

-- given: columns, rows, environment = { "NAME=value", … }.
function M.start(given)
  given = given or {}
  local self = setmetatable({ directory = process.directory() }, terminal)
  local command = { "new-session", "-d", "-x", tostring(given.columns or 100), "-y", tostring(given.rows or 24),
                    "env", "-u", "NO_COLOR", "-u", "ENV", "PS1=shell$ ", NO_LEAKS }
  for _, setting in ipairs(given.environment or {}) do command[#command + 1] = setting end
  command[#command + 1] = "sh"
  command[#command + 1] = "-i"
  local code, _, err = self:tmux(unpack(command))
  assert(code == 0, err)
  table.insert(M.running, self)
  self:shows "shell$"
  return self
end

-- The screen's lines; `colours`: with their escape sequences.
function terminal:screen(colours)
  local _, out = self:tmux("capture-pane", "-p", colours and "-e" or nil)
  return out
end

-- Waits until the screen contains this; returns the screen.
function terminal:shows(words)
  local screen
  process.eventually("the terminal shows " .. words, function()
    screen = self:screen()
    return screen:find(words, 1, true), screen
  end)
  return screen
end

function terminal:shows_no_longer(words)
  process.eventually("the terminal no longer shows " .. words, function()
    local screen = self:screen()
    return not screen:find(words, 1, true), screen
  end)
end

-- Names of keys as tmux has them: "q", "C-c", "Enter".
function terminal:press(...)
  local code, _, err = self:tmux("send-keys", ...)
  assert(code == 0, err)
end

function terminal:types(line)
  self:tmux("send-keys", "-l", line)
  self:press "Enter"
end

function terminal:resize(columns, rows)
  local code, _, err = self:tmux("resize-window", "-x", tostring(columns), "-y", tostring(rows))
  assert(code == 0, err)
end

function M.stop_all()
  local running = M.running
  M.running = {}
  for _, one in ipairs(running) do
    one:tmux "kill-server"
    process.remove(one.directory)
  end
end

return M
