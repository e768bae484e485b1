-- mcp-server-time of PyPI over stdio: structured results, and errors with the framework's prefix.
return function(talk)
  talk.serve { upstreams = { time = { command = talk.python, args = { "-m", "mcp_server_time" } } } }
  local model = talk.model()
  local noon = { source_timezone = "Europe/Berlin", time = "12:00", target_timezone = "Asia/Tokyo" }

  local reads = model:calls("convert_time", noon)
  model:hears("a time is converted", reads, "20:00:00+09:00")
  talk.check("its structured content fits the server's schema", reads.result.structuredContent.time_difference == "+8.0h", reads)
  model:hears("the current time is returned", model:calls("get_current_time", { timezone = "Etc/UTC" }), "Etc/UTC")

  model:is_refused("all problems are reported at once",
    model:calls("convert_time", { source_timezone = { "Etc/UTC", "Asia/Tokyo" }, time = "12:00", target_timzone = "Asia/Tokyo" }),
    "'source_timezone': expected string", "did you mean 'target_timezone'")
  model:reads_failure("an unknown time zone is the server's error",
    model:calls("get_current_time", { timezone = "Mars/Base" }), "No time zone found with key Mars/Base")
  model:reads_failure("an invalid hour is the server's error", model:calls("convert_time",
    { source_timezone = "Europe/Berlin", time = "25:00", target_timezone = "Asia/Tokyo" }), "Expected HH:MM")

  talk.is_killed_in_a_call(talk.model(), "convert_time", noon)
end
