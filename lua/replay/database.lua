-- Reads the SQLite databases in which goose and opencode keep their sessions, if libsqlite3 is on this machine: read-only. What
-- they hold of calls becomes lines as those assistants export them, in a file in memory, which is read as any other file.
local ffi = package.loaded.ffi or package.preload.ffi "ffi" -- `require` loads files of this program

local BYTES_MAX = 268435456 -- of the lines of one database
local READONLY, ROW, DONE, BUSY_MS = 1, 100, 101, 1000

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

-- The rows of a query, each as a table of texts. Nil, and why: it cannot be read; true, and why: not to its end.
local function rows(C, db, sql, columns, visit)
  local statement = ffi.new "void *[1]"
  if C.sqlite3_prepare_v2(db, sql, -1, statement, nil) ~= 0 then return nil, ffi.string(C.sqlite3_errmsg(db)) end
  local step, more = C.sqlite3_step(statement[0]), true
  while more and step == ROW do
    local row = {}
    for i = 1, columns do row[i] = text_of(C, statement[0], i - 1) end
    more = visit(row)
    if more then step = C.sqlite3_step(statement[0]) end
  end
  local why = step ~= ROW and step ~= DONE and ffi.string(C.sqlite3_errmsg(db)) or nil
  C.sqlite3_finalize(statement[0])
  return true, why
end

-- What the assistant's version has of these columns: a missing one is NULL.
local function column(has, name) return has[name] and "s." .. name or "NULL" end

local function goose_line(row)
  return cli.json { session_id = row[1], session_type = row[2], parent_session_id = row[3], role = row[4],
                    created_timestamp = tonumber(row[5]), content_json = row[6] }
end

local function goose_session(row)
  return cli.json { session_id = row[1], session_type = row[2], parent_session_id = row[3], working_dir = "", description = "",
                    accumulated_input_tokens = tonumber(row[4]), accumulated_output_tokens = tonumber(row[5]) }
end

local function opencode_line(row)
  local session, parent, message, role, data = unpack(row, 1, 5)
  if role == "user" then
    local info = { id = message, sessionID = session, parentSession = parent, role = role }
    return ('{"info":%s,"parts":[]}'):format(cli.json(info))
  end
  if not data or not data:find "^{" then return end
  local rest = data:sub(2)
  local ids = cli.json { sessionID = session, parentSession = parent, messageID = message }
  return ids:sub(1, -2) .. (rest:find "^%s*}" and "" or ",") .. rest
end

-- `sessions` is the table of sessions; queries(has, since) are those of the lines: { SQL, columns, line }.
M.goose = {
  sessions = "sessions",
  queries = function(has, since)
    local of = ("%s, %s"):format(column(has, "session_type"), column(has, "parent_session_id"))
    local young = ("created_timestamp >= %d"):format(since / 1000)
    return {
      { ("SELECT m.session_id, %s, m.role, m.created_timestamp, m.content_json FROM messages m %s WHERE m.%s ORDER BY m.rowid")
        :format(of, has.id and "LEFT JOIN sessions s ON s.id = m.session_id" or "", young), 6, goose_line },
      has.accumulated_input_tokens and { ("SELECT s.id, %s, s.accumulated_input_tokens, s.accumulated_output_tokens "
        .. "FROM sessions s WHERE s.id IN (SELECT session_id FROM messages WHERE %s)"):format(of, young), 5, goose_session }
        or nil,
    }
  end,
}

M.opencode = {
  sessions = "session",
  queries = function(has, since)
    return { { ("SELECT p.session_id, %s, p.message_id, json_extract(m.data, '$.role'), p.data FROM part p JOIN message m "
                .. "ON m.id = p.message_id %s WHERE p.time_created >= %d ORDER BY p.id"):format(column(has, "parent_id"),
                has.parent_id and "LEFT JOIN session s ON s.id = p.session_id" or "", since), 5, opencode_line } }
  end,
}

local function write_lines(C, db, kind, since, out)
  local has, written, last = {}, 0, nil
  local read, why = rows(C, db, ("SELECT name FROM pragma_table_info('%s')"):format(kind.sessions), 1, function(row)
    has[row[1]] = true
    return true
  end)
  for _, query in ipairs(read and kind.queries(has, since) or {}) do
    read, why = rows(C, db, query[1], query[2], function(row)
      local line = query[3](row)
      if line and line ~= last then -- a user's message of several parts is one
        written, last = written + #line + 1, line
        out:write((line:gsub("\n", " ")), "\n")
      end
      return written < BYTES_MAX
    end)
    if not read or why then break end
  end
  if read and written >= BYTES_MAX then why = ("only its first %d MB were read"):format(BYTES_MAX / 1e6) end
  return read, why
end

-- The path of a file with the lines of what is younger than `since`, in milliseconds (nil: none), and what is wrong.
function M.lines(kind, path, since)
  local loaded, C = pcall(ffi.load, "libsqlite3.so.0")
  if not loaded then return nil, "SQLite: install libsqlite3-0" end
  local file, why = cli.memory_file ""
  local out = file and io.open(file, "w")
  if not out then return nil, why end
  local db, read = ffi.new "void *[1]", nil
  if C.sqlite3_open_v2(path, db, READONLY, nil) == 0 then
    C.sqlite3_busy_timeout(db[0], BUSY_MS)
    read, why = write_lines(C, db[0], kind, since, out)
  else
    why = db[0] ~= nil and ffi.string(C.sqlite3_errmsg(db[0])) or "out of memory"
  end
  C.sqlite3_close_v2(db[0])
  out:close()
  return read and file or nil, why and "SQLite: " .. why
end

return M
