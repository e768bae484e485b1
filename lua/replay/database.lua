-- Reads the SQLite databases in which goose and opencode keep their sessions, if libsqlite3 is on this machine: read-only. What
-- they hold of calls becomes lines as those assistants export them, in a file in memory, which is read as any other file.
local ffi = package.loaded.ffi or package.preload.ffi "ffi" -- `require` loads files of this program

local BYTES_MAX = 268435456 -- of the lines of one database
local READONLY, ROW, BUSY_MS = 1, 100, 1000

ffi.cdef [[
int sqlite3_open_v2(const char *name, void **db, int flags, const char *vfs);
int sqlite3_close_v2(void *db);
int sqlite3_busy_timeout(void *db, int ms);
int sqlite3_prepare_v2(void *db, const char *sql, int bytes, void **statement, const char **tail);
int sqlite3_step(void *statement);
int sqlite3_finalize(void *statement);
int sqlite3_column_bytes(void *statement, int column);
const char *sqlite3_column_text(void *statement, int column);
const char *sqlite3_errmsg(void *db);
]]

local M = {}

local function text_of(C, statement, column)
  local text = C.sqlite3_column_text(statement, column)
  return text ~= nil and ffi.string(text, C.sqlite3_column_bytes(statement, column)) or nil
end

-- Calls visit(column, …) with the texts of each row. Nil, and why: it cannot be read.
local function rows(C, path, sql, columns, visit)
  local db, statement = ffi.new "void *[1]", ffi.new "void *[1]"
  local opened = C.sqlite3_open_v2(path, db, READONLY, nil) == 0
  if opened then C.sqlite3_busy_timeout(db[0], BUSY_MS) end
  local prepared = opened and C.sqlite3_prepare_v2(db[0], sql, -1, statement, nil) == 0
  local why = not prepared and "SQLite: " .. (db[0] ~= nil and ffi.string(C.sqlite3_errmsg(db[0])) or "out of memory")
  local more = prepared
  while more and C.sqlite3_step(statement[0]) == ROW do
    local row = {}
    for i = 1, columns do row[i] = text_of(C, statement[0], i - 1) end
    more = visit(unpack(row, 1, columns))
  end
  if prepared then C.sqlite3_finalize(statement[0]) end
  C.sqlite3_close_v2(db[0])
  return prepared or nil, why
end

M.goose = {
  sql = "SELECT session_id, role, created_timestamp, content_json FROM messages WHERE created_timestamp >= %d ORDER BY rowid",
  columns = 4,
  line = function(session, role, at, content)
    return cli.json { session_id = session, role = role, created_timestamp = tonumber(at), content_json = content }
  end,
}

M.opencode = {
  sql = "SELECT p.session_id, p.message_id, json_extract(m.data, '$.role'), p.data FROM part p JOIN message m "
        .. "ON m.id = p.message_id WHERE p.time_created >= %d * 1000 ORDER BY p.id",
  columns = 4,
  line = function(session, message, role, data)
    if role == "user" then
      return ('{"info":%s,"parts":[]}'):format(cli.json { id = message, sessionID = session, role = role })
    end
    if not data or not data:find "^{" then return end
    local rest = data:sub(2)
    local ids = cli.json { sessionID = session, messageID = message }
    return ids:sub(1, -2) .. (rest:find "^%s*}" and "" or ",") .. rest
  end,
}

-- The path of a file with the lines of what is younger than `since`, in milliseconds. Nil, and why: there is none.
function M.lines(kind, path, since)
  local loaded, C = pcall(ffi.load, "libsqlite3.so.0")
  if not loaded then return nil, "SQLite: install libsqlite3-0" end
  local file, why = cli.memory_file ""
  local out = file and io.open(file, "w")
  if not out then return nil, why end
  local written, last = 0, nil
  local read, fault = rows(C, path, kind.sql:format(since / 1000), kind.columns, function(...)
    local line = kind.line(...)
    if line and line ~= last then -- a user's message of several parts is one
      written, last = written + #line + 1, line
      out:write((line:gsub("\n", " ")), "\n")
    end
    return written < BYTES_MAX
  end)
  out:close()
  if not read then return nil, fault end
  return file
end

return M
