-- /etc/toolgate/toolgate.lua: the configuration of the daemon.
--
-- A line that begins with "--" and a name is a setting that is not set: it shows the default, or an example if its comment
-- says so. Remove the two dashes to set it. Sizes are in bytes. Paths are relative to this file's folder. Strings of
-- upstreams and the address of Redis may contain ${NAME}, ${NAME:-default} and ${file:/path}.
--
-- The daemon loads a changed file by itself and keeps what it has if the file has an error:
--   toolgate serve -c /etc/toolgate/toolgate.lua --check     before you save it where the daemon reads it
--   toolgate reload                                          to see the outcome
-- toolgate.lua(5) is this file as a manual page; /usr/share/doc/toolgate/configuration.md explains more.
return {
  -- == Socket, access and tools ==

  -- Path of the Unix socket, at most 107 bytes. A socket from systemd (toolgate.socket) takes precedence. The default is
  -- toolgate/toolgate.sock in $XDG_RUNTIME_DIR (or /run/user/UID, if it is the user's), else in /run. The environment variable
  -- TOOLGATE_SOCKET names another default.
  --socket = "/run/toolgate/toolgate.sock",

  -- Mode of the socket, octal digits as a string.
  --socket_mode = "0660",

  -- Who may connect and call which tools: a client may call the tools of all entries that match it. users and groups are
  -- names or numbers; without both, the entry is for everyone. tools are names with *; without it, all tools. prompts and
  -- resources (URIs) likewise; without one, all of them, but none if the entry has tools. The default is everyone whom the
  -- socket's mode admits, and everything. An example:
  --allow = { { users = { "root" } }, { groups = { "toolgate" }, tools = { "get_*" }, prompts = {}, resources = {} } },

  -- Who may approve and deny calls that policies ask about, accept changed definitions, reload, and see and touch other
  -- users' sessions: names or numbers. The default is the user that runs the daemon; root always may. An example:
  --operators = { users = { "root" }, groups = { "toolgate" } },

  -- Folder of the policies, *.lua. The default is policies in the daemon's working directory.
  --policies = "policies",

  -- Folder of the response schemas, NAME.json. The default is schemas beside this file, else beside the policies; it may be
  -- missing.
  --schemas = "schemas",

  -- File, or list of files, with definitions of tools that the agent runs: MCP's tools/list result, or a list of
  -- { name, description, inputSchema }. No default; an example:
  --tools = { "tools.json" },

  -- Files with the mcpServers of other clients, or folders of such files, *.json. No default; an example:
  --mcp_config = { "mcp.json" },

  -- == Upstreams ==

  -- The socket of `toolgate spawner`, which starts the upstreams with spawned = true. No default; an example:
  --spawner = "/run/toolgate/spawner.sock",

  -- Tools of upstreams whose definition changes after its first use: "off", "warn" (served and reported), "changes"
  -- (neither listed nor callable until `toolgate pins accept`) or "all" (new tools, too).
  --pins = "warn",

  -- MCP servers and addresses whose tools toolgate runs, by name. No default; examples of a process, an MCP server over
  -- HTTP and an address for policies with http = { … }:
  upstreams = {
    --files = {
      -- The program, without a shell; relative to this file's folder if it contains a slash.
      --command = "npx",
      -- Its arguments.
      --args = { "-y", "@modelcontextprotocol/server-filesystem", "/srv/shared" },
      -- More environment variables. It gets no others but HOME LOGNAME PATH SHELL TERM USER LANG TZ.
      --env = { NODE_ENV = "production" },
      -- Its working directory.
      --cwd = "/srv",
      -- What it may reach, by Landlock and seccomp; true: nothing may be written, no socket opened. It does not start on a
      -- kernel without them, unless best_effort or sandbox = "best_effort".
      --sandbox = {
        -- Besides system libraries. The default is everything but toolgate's configuration, policies, secrets and state.
        --read = { "/opt/mcp" },
        -- What it may change. The default is nothing.
        --write = { "/srv/shared" },
        -- IP sockets; Unix sockets never.
        --network = false,
        -- Names of the daemon's variables that it gets, or variables with values.
        --env = { "HOME" },
        -- Bytes of writable memory of each process.
        --memory = 4294967296,
        -- Processes of its user.
        --processes = 100,
        -- Start it without what the kernel lacks.
        --best_effort = false,
      --},
      -- The user as whom it runs, by name. The default is the daemon's own; only root, or the spawner, may change it.
      --user = "mcp-files",
      -- Started by the spawner, whose configuration has its command, env, cwd, sandbox and user; this one has none of them.
      --spawned = false,
      -- "at_once", or "lazy": at the first call.
      --start = "at_once",
      -- Names with *: only these tools, and those that a policy names. The default is all.
      --tools = { "read_*", "list_*" },
      -- Its prompts and resources likewise, names and URIs with *; {} means none. The default is all.
      --prompts = { "review_*" },
      --resources = { "file:///srv/docs/*" },
      -- Whether clients get its instructions.
      --instructions = true,
      -- Whether it gets the _meta keys of callers that are neither toolgate's nor MCP's.
      --forward_meta = true,
      -- "on_collision", or "always": its tools are named files__read_file.
      --prefix = "on_collision",
      -- Timeout of a call, in seconds or as "30s".
      --timeout = 60,
      -- Time until the server has sent its tool list, in seconds or as "30s".
      --start_timeout = 60,
      -- Time from a subscription that the server has ended to the next, in seconds or as "30s".
      --resubscribe = 10,
      -- What the schemas of its tools decide: "strict", "learn" or "advise".
      --schema = "learn",
      -- Concurrent calls; further calls wait. Without it 1,024 run at once, and further calls fail.
      --in_flight = 8,
    --},
    --docs = {
      -- An MCP server over streamable HTTP.
      --url = "https://docs.example/mcp",
      -- Headers of every request.
      --headers = { Authorization = "Bearer ${file:/etc/toolgate/tokens/%u}" },
      -- An instance for each user who calls: %u in a ${file:…} is the user's name. The default is false.
      --per_user = true,
      -- Time without a call after which a user's own instance ends, in seconds or as "30s".
      --user_idle = 600,
      -- Certificates to trust instead of the system's.
      --ca_file = "/etc/ssl/certs/ca-certificates.crt",
    --},
    --billing = {
      -- An address for policies that name this upstream; it offers no tools itself.
      --rest = "https://billing.example/v1",
    --},
  },

  -- == The ledger ==

  -- Counts the calls of all sessions, in the daemon's memory or in a Redis that several daemons share.
  ledger = {
    -- "uid": sessions of two users are separate. "shared": the same name is the same session for all users.
    --namespace = "uid",

    -- Seconds without a call after which a session is deleted.
    --ttl_s = 86400,

    -- Calls per session that operators and policies can see.
    --history = 100,

    -- Bytes of the daemon's own ledger, also of the one that stands in for Redis.
    --memory = 268435456,

    -- Address of the Redis: unix:/path?db=2, redis://user:password@host:port/db, cluster://host:port,… or
    -- sentinel://host:port,…/master/db. No default; an example:
    --redis = "unix:/run/redis/redis.sock?db=2",

    -- File whose first line is the password of Redis, read at every connect. No default; an example:
    --password_file = "/run/secrets/redis",

    -- Milliseconds; a request that Redis has not answered by then counts as an outage.
    --timeout_ms = 50,

    -- What happens to calls during an outage: "local" counts in the daemon, "closed" refuses them, "open" lets them pass
    -- uncounted.
    --on_outage = "local",

    -- "awaited": toolgate replies when Redis has counted the result. "sent": it does not wait.
    --settle = "awaited",
  },

  -- == Defaults of all policies ==

  -- Each policy may override these.
  defaults = {
    -- "enforce"; "shadow": decisions are made and recorded, not enforced; "off".
    --mode = "enforce",

    -- With mode = "shadow": the date by which it is to end. From then on toolgate warns, and still enforces nothing.
    --shadow_until = "2026-12-01",

    -- Fields that an open schema does not name: "pass", "drop" or "refuse".
    --unknown = "pass",

    -- "lenient", or "strict": a date-time without its time zone is refused.
    --formats = "lenient",

    retry = {
      -- Repair attempts for one tool in one turn, before toolgate refuses the call.
      --repair = 2,

      -- Identical calls in one turn. The default depends on the tool: 5 for one that reads, 2 for one that writes, 1 for
      -- one that destroys, else 3.
      --same_call = 3,

      -- Identical calls after transient failures.
      --transient = 3,

      -- toolgate itself retries transient failures of idempotent tools: true, or how. The default is off. An example:
      --again = {
        -- Further tries.
        --times = 2,
        -- The pause before the first, in seconds or as "200ms"; it doubles.
        --backoff = 0.2,
        -- No try begins later than this, in seconds or as "5s".
        --within = 5,
      --},
    },

    loop = {
      -- toolgate refuses this identical call in a row with an identical result.
      --repeats = 3,

      -- This one ends the run.
      --halt = 5,

      -- The same over several turns.
      --across_turns = 5,

      -- "result", or "arguments": identical arguments alone make a loop.
      --compare = "result",

      -- The failure of a tool in a row with the same error that is refused; "refuse": the sixth; "note": none.
      --same_failure = 10,

      poll = {
        -- Identical calls in a row with changing results.
        --max = 20,
      },
    },

    -- Limits of each tool. No defaults; examples:
    limits = {
      -- Admitted calls in a turn.
      --calls_per_turn = 20,
      -- Admitted calls in a session.
      --calls_per_session = 200,
      -- Seconds since the turn began.
      --seconds_per_turn = 300,
      -- Their cost in a turn, in the unit of the policies' cost.
      --cost_per_turn = 0.5,
      -- Their cost in a session.
      --cost_per_session = 5,
    },

    -- Large results are shortened: true, or how. The default is off. An example:
    --compact = {
      -- The size of a shortened result in bytes.
      --max_bytes = 20000,
      -- The same in tokens, as estimated.
      --max_tokens = 5000,
      -- Fields that always stay.
      --keep = { "id", "events[].id" },
      -- Fields that are always left out.
      --drop = { "events[].raw" },
    --},

    -- Which unambiguous mistakes are repaired: true, false, or a table.
    coerce = {
      -- An object or a list that arrives as JSON text.
      --json = true,
      -- "5" for 5, and 5 for "5".
      --strings = true,
      -- One value for a list of one.
      --lists = true,
      -- null for an optional argument.
      --nulls = true,
      -- Another spelling of an enum's value.
      --enums = true,
      -- 5.0 for 5.
      --floats = true,
      -- A name that differs only in case, separators or a final s.
      --names = true,
      -- "yes", "no", 1 and 0 for a boolean; "", "None" and "null" for nothing.
      --words = true,
      -- Arguments inside an undeclared arguments, input, parameters, params or the tool's name.
      --wrapped = true,
    },
  },

  -- == Limits of a session ==

  -- For all tools together. No defaults; examples:
  session_limits = {
    -- Admitted calls in a turn.
    --calls_per_turn = 50,
    -- Admitted calls in a session.
    --calls_per_session = 500,
    -- Seconds since the turn began.
    --seconds_per_turn = 600,
    -- Their cost in a turn, in the unit of the policies' cost.
    --cost_per_turn = 1,
    -- Their cost in a session.
    --cost_per_session = 10,
  },

  -- == Limits of the daemon ==

  limits = {
    -- Bytes of one line from a client.
    --message = 8388608,

    -- Bytes of the arguments of one call; at most message.
    --arguments = 1048576,

    -- Nesting of JSON.
    --depth = 128,

    -- Concurrent calls of one connection.
    --in_flight = 256,

    -- Concurrent calls of one user over all connections. The default is as many as in_flight_all leaves free.
    --in_flight_user = 1024,

    -- Concurrent calls of all connections. The default is 16 times in_flight.
    --in_flight_all = 4096,

    -- Concurrent connections. The units of systemd allow 65536 descriptors.
    --connections = 4096,

    -- Bytes of all calls together, with the replies that clients have not read.
    --memory = 1073741824,

    -- Milliseconds of one hook of one call.
    --policy_ms = 50,

    -- KiB of the memory of all policies together.
    --policy_kb = 65536,
  },

  -- == The decision log ==

  -- One record of each call, as JSON on one line. decisions = false switches it off.
  decisions = {
    -- The file; false: no file. The default is decisions.ndjson in the state folder.
    --file = "/var/lib/toolgate/decisions.ndjson",

    -- What it has of the arguments: "none", "hash", "masked" (secrets are left out) or "full".
    --arguments = "masked",

    -- The same of the results.
    --results = "hash",

    -- Names of further secret values in arguments and results, with * and ?; ! in front exempts one. No default; an example:
    --mask = { "ssn", "*pin*" },

    -- MiB; a larger file is rotated.
    --max_mb = 64,

    -- Older files that are kept.
    --keep = 4,

    -- Whether journald gets each record, too: true, or the path of another journal's socket.
    --journald = false,
  },

  -- == Metrics ==

  -- An HTTP endpoint for operators. Without listen there is none.
  metrics = {
    -- "unix:PATH", or a loopback address and port, which needs PrivateNetwork=no in the unit. No default; an example:
    --listen = "unix:/run/toolgate/metrics.sock",

    -- Whether it serves the page for people, too. The page needs a Unix socket, or a token.
    --page = false,

    -- File with the token that users' content needs, on TCP always. No default; an example:
    --token_file = "/etc/toolgate/metrics-token",
  },

  -- == Traces ==

  -- Sends a span of each call to an OpenTelemetry collector, by OTLP over HTTP as JSON. Needs libcurl.
  traces = {
    -- The collector's whole address. No default, and without it no spans; an example:
    --endpoint = "http://127.0.0.1:4318/v1/traces",

    -- Headers of each request. No default; an example:
    --headers = { Authorization = "Bearer ${OTLP_TOKEN:-none}" },

    -- Certificates to trust instead of the system's.
    --ca_file = "/etc/ssl/certs/ca-certificates.crt",

    -- Share of the traces that begin here, 0 to 1. A traceparent's sampled flag comes first.
    --sample = 1,

    -- Time until a batch of spans is sent, in seconds or as "5s". It is sent earlier once it has 512 KB.
    --batch = 1,

    -- The resource's service.name.
    --service_name = "toolgate",
  },

  -- == Logging and the rest ==

  log = {
    -- "debug", "info", "warn", "error" or "off".
    --level = "info",

    -- "text": key=value pairs; or "json".
    --format = "text",

    -- Path of the log file. The default is standard error, which systemd keeps in the journal. An example:
    --file = "/var/lib/toolgate/toolgate.log",
  },

  -- Whether the daemon loads changed files by itself.
  --watch = true,

  -- Folder of what the daemon keeps: the quarantine list, the tool lists of lazy upstreams and, without Redis, the key of
  -- call ids. The default is systemd's StateDirectory, else SOCKET.state. Each daemon needs its own.
  --state = "/var/lib/toolgate",

  -- Seconds without a call that begin a new turn if a client sends no turns; 0: no pause does.
  --turn_idle_s = 90,

  -- Without a session, toolgate refuses this identical call in a row with an identical result.
  --anonymous_repeats = 8,

  -- Whether tools are refused that have no description, or a parameter without one.
  --require_descriptions = false,
}
