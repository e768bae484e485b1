-- What the readers ask of a line's values and tell of its calls: src/cli/lua_replay.c.
return cli.transcript()
