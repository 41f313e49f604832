/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a JSON text, parsed by simdjson. Only json_tree.cpp uses simdjson, which is a C++
 * library. Threads: any; a tree is used only by the thread that made it. */
#ifndef SP_TOOL_READ_JSON_TREE_H
#define SP_TOOL_READ_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sp_json_tree sp_json_tree;

typedef enum sp_json_kind {
    SP_JSON_NULL = 0,
    SP_JSON_BOOL,
    SP_JSON_INTEGER, /* fits into int64_t or uint64_t */
    SP_JSON_REAL,    /* any other number */
    SP_JSON_STRING,
    SP_JSON_ARRAY,
    SP_JSON_OBJECT,
} sp_json_kind;

/* A value of a tree, valid as long as the tree. */
typedef struct sp_json_value {
    uint64_t place[2];
} sp_json_value;

/* A text of a tree: LENGTH bytes of UTF-8, which may include zero bytes, and one more zero byte. */
typedef struct sp_json_text {
    const char *data;
    size_t length;
} sp_json_text;

/* A walk through the elements of an array, or through the members of an object, in their order. */
typedef struct sp_json_walk {
    uint64_t next[2], end[2];
} sp_json_walk;

/* Parse the LENGTH bytes at TEXT, which are copied. Returns NULL when they are not valid JSON (*WHY
 * is the reason, a static text) or when memory is short (*WHY is NULL). The caller frees the tree
 * with sp_json_tree_free. */
sp_json_tree *sp_json_tree_parse(const char *text, size_t length, const char **why);
void sp_json_tree_free(sp_json_tree *tree);
sp_json_value sp_json_tree_root(const sp_json_tree *tree);

sp_json_kind sp_json_kind_of(sp_json_value value);
/* The value, when it has the kind in the function's name (sp_json_real: any number); else false, 0,
 * an empty text, or a walk that ends at once. */
bool sp_json_bool(sp_json_value value);
double sp_json_real(sp_json_value value);
/* The magnitude of an integer; *NEGATIVE is its sign. */
uint64_t sp_json_magnitude(sp_json_value value, bool *negative);
sp_json_text sp_json_text_of(sp_json_value value);
size_t sp_json_array_size(sp_json_value array);

sp_json_walk sp_json_elements(sp_json_value array);
bool sp_json_next_element(sp_json_walk *walk, sp_json_value *element);
sp_json_walk sp_json_members(sp_json_value object);
bool sp_json_next_member(sp_json_walk *walk, sp_json_text *key, sp_json_value *value);

#ifdef __cplusplus
}
#endif

#endif
