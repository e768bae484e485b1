/* What lua/cli gets of this host that Lua's own libraries lack: files, folders, sockets, limits, the clock. A
 * function that fails returns nil and the error in words. */
#include "cli/lua_cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(lua_State *L)
{
    int error = errno;
    lua_pushnil(L);
    lua_pushstring(L, strerror(error));
    lua_pushboolean(L, error == EEXIST);
    return 3;
}

static int good(lua_State *L)
{
    lua_pushboolean(L, true);
    return 1;
}

/* ---- files and folders --------------------------------------------------------------- */

/* cli.stat(path): { mode (07777), uid, gid, file = "device:inode", socket = true }. */
static int stat_path(lua_State *L)
{
    struct stat st;
    if (stat(luaL_checkstring(L, 1), &st) != 0)
        return fail(L);
    const lua_Integer numbers[] = {st.st_mode & 07777, st.st_uid, st.st_gid};
    static const char *const names[] = {"mode", "uid", "gid"};
    lua_newtable(L);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        lua_pushinteger(L, numbers[i]);
        lua_setfield(L, -2, names[i]);
    }
    char file[48];
    snprintf(file, sizeof(file), "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    lua_cli_set(L, "file", file);
    lua_pushboolean(L, S_ISSOCK(st.st_mode));
    lua_setfield(L, -2, "socket");
    return 1;
}

/* cli.access(path, "rwx"): true if this user may do all of it; "" asks whether it is there. */
static int access_path(lua_State *L)
{
    const char *letters = luaL_checkstring(L, 2);
    int mode = (strchr(letters, 'r') ? R_OK : 0) | (strchr(letters, 'w') ? W_OK : 0) |
               (strchr(letters, 'x') ? X_OK : 0);
    return access(luaL_checkstring(L, 1), mode ? mode : F_OK) == 0 ? good(L) : fail(L);
}

/* cli.list_folder(path): the names in it; empty if it cannot be read. */
static int list_folder(lua_State *L)
{
    DIR *folder = opendir(luaL_checkstring(L, 1));
    struct dirent *entry;
    lua_newtable(L);
    for (int i = 1; folder && (entry = readdir(folder)); i++) {
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, i);
    }
    if (folder)
        closedir(folder);
    return 1;
}

/* cli.make_folder(path): true, also if it is there. */
static int make_folder(lua_State *L)
{
    return mkdir(luaL_checkstring(L, 1), 0755) == 0 || errno == EEXIST ? good(L) : fail(L);
}

/* cli.write_file(path, text, over): a file that exists is only overwritten if `over`; the third result of a
 * failure is true if that is the reason. */
static int write_file(lua_State *L)
{
    struct str text = lua_cli_str(L, 2);
    int fd = open(luaL_checkstring(L, 1),
                  O_WRONLY | O_CREAT | O_CLOEXEC | (lua_toboolean(L, 3) ? O_TRUNC : O_EXCL), 0644);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    return written ? good(L) : fail(L);
}

const luaL_Reg lua_host_functions[] = {
    {"stat", stat_path},          {"access", access_path},    {"list_folder", list_folder},
    {"make_folder", make_folder}, {"write_file", write_file}, {0},
};
