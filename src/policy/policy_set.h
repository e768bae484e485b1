/* The policies of a folder, loaded and freed together: they share one sandbox. All files are read before the
 * first error is reported. */
#ifndef TOOLGATE_POLICY_POLICY_SET_H
#define TOOLGATE_POLICY_POLICY_SET_H

#include "policy/policy.h"

struct arena;

#define POLICY_DEADLINE_MS 50u    /* one hook of one call */
#define POLICY_MEMORY_KB   65536u /* all policies of a set */

/* A file that stalled the process; quarantined while its text is the same. */
struct policy_stall {
    struct str file;
    uint64_t text; /* hash_stable(…).low of it */
};

struct policy_set_options {
    uint32_t deadline_ms, memory_kb;   /* 0: the defaults above */
    const struct policy_stall *stalls; /* borrowed until the set is loaded */
    size_t stall_count;
    bool skip_broken; /* the set holds the files that load; the errors are reported all the same */
};

/* At least one per file that does not load. */
struct policy_load_errors {
    struct arena *arena;
    struct str *list; /* "policies/x.lua:12: unknown field 'desciption' (did you mean 'description'?)" */
    size_t count;
};

/* Loads one file, or every *.lua of a folder but *_spec.lua, sorted by name; NULL gives an empty set. In
 * steps of one file, for an event loop: begin, step until it returns false, end; or at once. On ERR_POLICY or
 * ERR_IO there is at least one error, and *out is NULL unless skip_broken is set. */
struct policy_set_loader;
struct policy_set_loader *policy_set_load_begin(const char *folder, const struct policy_set_options *options,
                                                struct policy_load_errors *errors);
bool policy_set_load_step(struct policy_set_loader *loader);
enum err policy_set_load_end(struct policy_set_loader *loader, struct policy_set **out);
enum err policy_set_load(const char *folder, const struct policy_set_options *options,
                         struct policy_set **out, struct policy_load_errors *errors);

/* The same for source text; `name` is the file's name in error messages. */
enum err policy_set_load_string(struct str name, struct str source, const struct policy_set_options *options,
                                struct policy_set **out, struct policy_load_errors *errors);
void policy_set_free(struct policy_set *set); /* NULL is fine */

size_t policy_set_count(const struct policy_set *set);
const struct policy *policy_set_at(const struct policy_set *set, size_t index);
struct str policy_set_module_file(const struct policy_set *set,
                                  size_t index); /* of policies/lib; empty: past the last */
const struct policy *policy_set_find(const struct policy_set *set, struct str tool); /* NULL: none */

/* The policies for several tools that lie over this one, in the order of their files, in `arena`. */
size_t policy_set_overlays(const struct policy_set *set, struct str tool, struct arena *arena,
                           const struct policy ***out);

/* The quarantined files: those of options.stalls that are in the set with the same text. */
const struct policy_stall *policy_set_stalls(const struct policy_set *set, size_t *count);

/* What gateway{…} declares for the list of tools: instructions, and prepare_tools as HOOK_PREPARE. Without
 * such a file its `file` is empty. */
const struct policy *policy_set_gateway(const struct policy_set *set);

/* The text of a policy, read again, so not for a serving daemon; empty: it cannot be read. */
struct str policy_source(const struct policy *policy, struct arena *arena);

/* A hash of all file names and texts. */
uint64_t policy_set_hash(const struct policy_set *set);

/* Frees the examples once they have run; they are a quarter of the memory of a policy. */
void policy_set_free_examples(struct policy_set *set);

/* Sets hits and failures to zero, as those of examples are not traffic. */
void policy_set_reset_counters(struct policy_set *set);

#endif
