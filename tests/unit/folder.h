/* A temporary folder, which is removed with all that lies in it. */
#ifndef TOOLGATE_UNIT_FOLDER_H
#define TOOLGATE_UNIT_FOLDER_H

#include "unit.h"

#define FOLDER_PATHS     16 /* that are valid at a time */
#define FOLDER_PATH_SIZE 128

static char folder[64];

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/toolgate-unit-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void remove_folder(void)
{
    char command[FOLDER_PATH_SIZE];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* The path of this name in the folder. */
static inline const char *in_folder(const char *name)
{
    static char paths[FOLDER_PATHS][FOLDER_PATH_SIZE];
    static unsigned count;
    char *path = paths[count++ % FOLDER_PATHS];
    snprintf(path, FOLDER_PATH_SIZE, "%s/%s", folder, name);
    return path;
}

/* Returns the path. */
static inline const char *write_file(const char *name, const char *text)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

#endif
