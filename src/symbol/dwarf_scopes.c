/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/dwarf_scopes.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/reach.h"

/* Deeper trees are damaged or malicious, and so are longer chains of references. Longer names are
 * not made. */
enum { TREE_DEPTH = 100, SCOPES_MAX = 32, REFERENCES_MAX = 8, LONGEST_NAME = 8192 };

enum { FIRST_CAPACITY = 256, NO_SCOPE = UINT32_MAX };

/* A function, type or namespace. `address` is that of its bytes, as in Dwarf_Die. */
typedef struct scope {
    void *address;
    uint32_t parent; /* NO_SCOPE: none but the unit */
} scope;

/* `scopes` ascend by address, because the entries of a tree are in the order of the walk. */
struct sp_scope_table {
    Dwarf_CU *cu;
    scope *scopes;
    size_t count, capacity;
    bool failed;
};

/* ---- the tree of a unit ---- */

typedef enum language { LANGUAGE_C, LANGUAGE_CPP, LANGUAGE_OTHER } language;

static language language_of(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
        return LANGUAGE_C;
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2a: /* C++17, C++20 and C++23; the header of libdw 0.188 does not have them */
    case 0x2b:
    case 0x3a:
        return LANGUAGE_CPP;
    default:
        return LANGUAGE_OTHER;
    }
}

/* The state while a tree is read. In C, types contain no functions, and most of a unit's tree is
 * types: in units of C they are skipped. */
typedef struct reading {
    sp_scope_table *table; /* NULL: scopes are not noted */
    bool in_types;
    sp_dwarf_each *each; /* NULL: functions with code are not asked for */
    void *user;
} reading;

static bool is_type(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* Whether an entry with TAG may contain functions: namespaces, types with methods (only IN_TYPES),
 * and, because of nested functions, blocks and functions. */
static bool may_hold_functions(int tag, bool in_types)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block ||
           (in_types && (is_type(tag) || tag == DW_TAG_enumeration_type));
}

/* Add the entry DIE to TABLE, and return its number. Blocks are no scopes of names. */
static uint32_t add_scope(sp_scope_table *table, const Dwarf_Die *die, int tag, uint32_t parent)
{
    if (tag == DW_TAG_lexical_block || table->failed)
        return parent;
    table->failed = !SP_REACH(table->scopes, table->count, table->capacity, FIRST_CAPACITY);
    if (table->failed)
        return parent;
    table->scopes[table->count] = (scope){die->addr, parent};
    return (uint32_t)table->count++;
}

/* Whether the function DIE may contain others. A declaration has only parameters. A function that
 * is inlined everywhere has no code of its own, but the types and lambdas of the source. */
static bool read_function(const reading *r, Dwarf_Die *die)
{
    if (r->table && dwarf_hasattr(die, DW_AT_declaration))
        return false;
    bool has_code = dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
    if (has_code && r->each)
        r->each(r->user, die);
    return has_code || r->table;
}

static void read_tree(const reading *r, Dwarf_Die *parent, uint32_t parent_scope, int depth)
{
    Dwarf_Die child;
    if (depth > TREE_DEPTH || dwarf_child(parent, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        if (!may_hold_functions(tag, r->in_types))
            continue;
        uint32_t own = r->table ? add_scope(r->table, &child, tag, parent_scope) : NO_SCOPE;
        if (tag != DW_TAG_subprogram || read_function(r, &child))
            read_tree(r, &child, own, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

/* Add a table for the unit of DIE. NULL: memory is short. */
static sp_scope_table *add_table(sp_dwarf_scopes *scopes, const Dwarf_Die *die)
{
    if (!SP_REACH(scopes->tables, scopes->table_count, scopes->table_capacity, 16))
        return NULL;
    sp_scope_table *table = &scopes->tables[scopes->table_count++];
    *table = (sp_scope_table){.cu = die->cu};
    return table;
}

void sp_dwarf_scopes_read(sp_dwarf_scopes *scopes, Dwarf_Die *unit, sp_dwarf_each *each, void *user)
{
    language language = language_of(unit);
    const reading r = {.table = language == LANGUAGE_CPP ? add_table(scopes, unit) : NULL,
                       .in_types = language != LANGUAGE_C,
                       .each = each,
                       .user = user};
    read_tree(&r, unit, NO_SCOPE, 0);
}

static sp_scope_table *find_table(const sp_dwarf_scopes *scopes, const Dwarf_CU *cu)
{
    for (size_t i = scopes->table_count; i-- > 0;)
        if (scopes->tables[i].cu == cu)
            return &scopes->tables[i];
    return NULL;
}

/* The table of the unit of DIE, or NULL when memory is short. Functions that are shared between
 * units, or between files, and some types are in units that have no code and were not read. */
static const sp_scope_table *table_of(sp_dwarf_scopes *scopes, Dwarf_Die *die)
{
    Dwarf_Die unit;
    sp_scope_table *table = find_table(scopes, die->cu);
    if (!table && dwarf_diecu(die, &unit, NULL, NULL)) {
        table = add_table(scopes, &unit);
        if (table)
            read_tree(&(reading){.table = table, .in_types = true}, &unit, NO_SCOPE, 0);
    }
    return table && !table->failed ? table : NULL;
}

/* The scope with ADDRESS, or NULL when it is not in the part of the tree that was read. */
static const scope *find_scope(const sp_scope_table *table, const void *address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((const char *)table->scopes[middle].address < (const char *)address)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < table->count && table->scopes[low].address == address;
    return found ? &table->scopes[low] : NULL;
}

static bool die_of(const sp_scope_table *table, uint32_t number, Dwarf_Die *die)
{
    return dwarf_die_addr_die(dwarf_cu_getdwarf(table->cu), table->scopes[number].address, die);
}

/* ---- lambdas ---- */

/* Whether TYPE, which has no name, is that of a lambda. Other types without a name may have an
 * operator(), too, but the compiler did not make it. */
static bool is_lambda(Dwarf_Die *type)
{
    Dwarf_Die child;
    if (dwarf_child(type, &child) != 0)
        return false;
    do {
        const char *name = dwarf_tag(&child) == DW_TAG_subprogram ? dwarf_diename(&child) : NULL;
        if (name && strncmp(name, "operator()", 10) == 0 && dwarf_hasattr(&child, DW_AT_artificial))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* Whether the function PARENT has a lambda beside LAMBDA. A namespace or a type may have one
 * anywhere. */
static bool has_other_lambda(const sp_scope_table *table, const scope *lambda)
{
    Dwarf_Die die;
    if (lambda->parent == NO_SCOPE || !die_of(table, lambda->parent, &die) ||
        dwarf_tag(&die) != DW_TAG_subprogram)
        return true;
    for (size_t i = lambda->parent + (size_t)1; i < table->count; i++) {
        const scope *other = &table->scopes[i];
        if (other->parent == NO_SCOPE || other->parent < lambda->parent)
            return false; /* the scopes of a function follow it at once */
        if (other->parent == lambda->parent && other != lambda &&
            die_of(table, (uint32_t)i, &die) && is_type(dwarf_tag(&die)) && !dwarf_diename(&die) &&
            is_lambda(&die))
            return true;
    }
    return false;
}

static bool add_lambda(sp_buffer *out, const sp_scope_table *table, const scope *lambda,
                       Dwarf_Die *type)
{
    int line = 0;
    if (!is_lambda(type))
        return false;
    if (!has_other_lambda(table, lambda))
        return sp_buffer_add_string(out, "{lambda}");
    return dwarf_decl_line(type, &line) == 0 && sp_buffer_printf(out, "{lambda:%d}", line);
}

/* ---- names ---- */

/* Go from an inlined function to the function, from a definition to its declaration, which is in
 * the scopes that belong to the name, and from a type to its entry in a unit of its own. */
static void find_declaration(Dwarf_Die *die)
{
    static const unsigned ways[] = {DW_AT_abstract_origin, DW_AT_specification, DW_AT_signature};
    Dwarf_Attribute attribute;
    bool found = true;
    for (int i = 0; i < REFERENCES_MAX && found; i++) {
        found = false;
        for (size_t way = 0; way < SP_ARRAY_LENGTH(ways) && !found; way++)
            found = dwarf_formref_die(dwarf_attr(die, ways[way], &attribute), die) != NULL;
    }
}

/* Whether FUNCTION in the scope PARENT is extern "C": other files can call it, and yet it has no
 * linkage name. Its namespace is no part of its symbol. */
static bool is_extern_c(const sp_scope_table *table, uint32_t parent, Dwarf_Die *function)
{
    Dwarf_Die die;
    return dwarf_tag(function) == DW_TAG_subprogram && dwarf_hasattr(function, DW_AT_external) &&
           !dwarf_hasattr(function, DW_AT_linkage_name) &&
           (!die_of(table, parent, &die) || dwarf_tag(&die) == DW_TAG_namespace);
}

static bool add_own_name(sp_buffer *out, const sp_scope_table *table, const scope *own,
                         Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    if (name)
        return sp_buffer_add_string(out, name);
    if (dwarf_tag(die) == DW_TAG_namespace)
        return sp_buffer_add_string(out, "(anonymous namespace)");
    return is_type(dwarf_tag(die)) && add_lambda(out, table, own, die);
}

/* Add the name of DIE with its scopes to OUT. False when it is not known. */
static bool add_name(sp_dwarf_scopes *scopes, sp_buffer *out, Dwarf_Die *die, int depth)
{
    Dwarf_Die declared = *die, parent;
    find_declaration(&declared);
    const sp_scope_table *table = table_of(scopes, &declared);
    const scope *found = table ? find_scope(table, declared.addr) : NULL;
    if (!found || depth > SCOPES_MAX)
        return false;
    const scope own = *found;
    if (own.parent != NO_SCOPE && !is_extern_c(table, own.parent, &declared)) {
        if (!die_of(table, own.parent, &parent) || !add_name(scopes, out, &parent, depth + 1) ||
            !sp_buffer_add_string(out, "::"))
            return false;
        table = table_of(scopes, &declared); /* the tables may have moved */
        found = find_scope(table, declared.addr);
    }
    return add_own_name(out, table, found, &declared);
}

static const char *make_name(sp_dwarf_scopes *scopes, Dwarf_Die *declared)
{
    sp_buffer *text = &scopes->text;
    const char *bare = dwarf_diename(declared);
    sp_buffer_clear(text);
    text->maximum = LONGEST_NAME;
    if (!bare || !add_name(scopes, text, declared, 0) || strcmp((char *)text->data, bare) == 0)
        return NULL;
    uint32_t number = sp_intern_put(&scopes->texts, text->data, text->length, NULL);
    return number == SP_INTERN_FAILED ? NULL : sp_intern_key(&scopes->texts, number);
}

const char *sp_dwarf_scopes_name(sp_dwarf_scopes *scopes, Dwarf_Die *function)
{
    bool is_new;
    Dwarf_Die declared = *function;
    if (!find_table(scopes, function->cu))
        return NULL;
    find_declaration(&declared);
    uint32_t number =
        sp_intern_put(&scopes->functions, &declared.addr, sizeof declared.addr, &is_new);
    if (number == SP_INTERN_FAILED ||
        !SP_REACH(scopes->names, number, scopes->name_capacity, FIRST_CAPACITY))
        return NULL;
    if (is_new)
        scopes->names[number] = make_name(scopes, &declared);
    return scopes->names[number];
}

size_t sp_dwarf_scopes_bytes(const sp_dwarf_scopes *scopes)
{
    size_t bytes = scopes->name_capacity * sizeof *scopes->names +
                   sp_intern_bytes(&scopes->functions) + sp_intern_bytes(&scopes->texts);
    for (size_t i = 0; i < scopes->table_count; i++)
        bytes += sizeof scopes->tables[i] +
                 scopes->tables[i].capacity * sizeof *scopes->tables[i].scopes;
    return bytes;
}

void sp_dwarf_scopes_deinit(sp_dwarf_scopes *scopes)
{
    for (size_t i = 0; i < scopes->table_count; i++)
        free(scopes->tables[i].scopes);
    free(scopes->tables);
    free(scopes->names);
    sp_intern_deinit(&scopes->functions);
    sp_intern_deinit(&scopes->texts);
    sp_buffer_deinit(&scopes->text);
    *scopes = (sp_dwarf_scopes){0};
}
