// SPDX-License-Identifier: Apache-2.0
// A value or an iterator of simdjson is two words: a document and a place in the document. C code
// keeps it as these two words. simdjson's exceptions are off: functions return error codes.
#include "tool/read/json_tree.h"

#include <cstring>
#include <new>
#include <type_traits>

#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

namespace dom = simdjson::dom;

// The limit of nesting is the same as jansson's, which finds the mistake in a text (json_read.c).
enum { MOST_LEVELS = 2048 };

struct sp_json_tree {
    dom::parser parser;
    dom::element root;
};

template <class T> static T restored(const uint64_t words[2])
{
    static_assert(sizeof(T) == 2 * sizeof *words, "a document and a place");
    static_assert(std::is_trivially_copyable<T>::value, "copied as bytes");
    T made;
    std::memcpy(static_cast<void *>(&made), words, sizeof made);
    return made;
}

template <class T> static void keep(uint64_t words[2], const T &kept)
{
    static_assert(sizeof(T) == 2 * sizeof *words, "a document and a place");
    static_assert(std::is_trivially_copyable<T>::value, "copied as bytes");
    std::memcpy(words, static_cast<const void *>(&kept), sizeof kept);
}

static dom::element element_of(const sp_json_value &value)
{
    return restored<dom::element>(value.place);
}

// The value as T; an empty T when it is of another type.
template <class T> static T get(const sp_json_value &value)
{
    T got{};
    if (element_of(value).get(got) != simdjson::SUCCESS)
        return T{};
    return got;
}

static bool is(const sp_json_value &value, dom::element_type type)
{
    return element_of(value).type() == type;
}

// ---- the tree ----

sp_json_tree *sp_json_tree_parse(const char *text, size_t length, const char **why)
{
    *why = nullptr;
    sp_json_tree *tree = new (std::nothrow) sp_json_tree;
    if (!tree)
        return nullptr;
    simdjson::error_code error = tree->parser.allocate(length, MOST_LEVELS);
    if (error == simdjson::SUCCESS)
        error = tree->parser.parse(text, length).get(tree->root);
    if (error == simdjson::SUCCESS)
        return tree;
    if (error != simdjson::MEMALLOC)
        *why = simdjson::error_message(error);
    delete tree;
    return nullptr;
}

void sp_json_tree_free(sp_json_tree *tree)
{
    delete tree;
}

sp_json_value sp_json_tree_root(const sp_json_tree *tree)
{
    sp_json_value value;
    keep(value.place, tree->root);
    return value;
}

// ---- values ----

sp_json_kind sp_json_kind_of(sp_json_value value)
{
    switch (element_of(value).type()) {
    case dom::element_type::ARRAY:
        return SP_JSON_ARRAY;
    case dom::element_type::OBJECT:
        return SP_JSON_OBJECT;
    case dom::element_type::STRING:
        return SP_JSON_STRING;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
        return SP_JSON_INTEGER;
    case dom::element_type::DOUBLE:
        return SP_JSON_REAL;
    case dom::element_type::BOOL:
        return SP_JSON_BOOL;
    case dom::element_type::NULL_VALUE:
        break;
    }
    return SP_JSON_NULL;
}

bool sp_json_bool(sp_json_value value)
{
    return get<bool>(value);
}

double sp_json_real(sp_json_value value)
{
    return get<double>(value);
}

uint64_t sp_json_magnitude(sp_json_value value, bool *negative)
{
    *negative = false;
    if (is(value, dom::element_type::UINT64))
        return get<uint64_t>(value);
    int64_t number = get<int64_t>(value);
    *negative = number < 0;
    return *negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
}

sp_json_text sp_json_text_of(sp_json_value value)
{
    std::string_view text = get<std::string_view>(value);
    return {text.data() ? text.data() : "", text.size()};
}

// ---- arrays and objects ----

size_t sp_json_array_size(sp_json_value array)
{
    constexpr size_t MOST_THAT_IT_COUNTS = 0xffffff;
    dom::array elements = get<dom::array>(array);
    size_t size = elements.size();
    if (size < MOST_THAT_IT_COUNTS)
        return size;
    size = 0;
    for (dom::element element : elements) {
        static_cast<void>(element);
        size++;
    }
    return size;
}

// A walk through VALUE, which is a T. A value of another type gives an empty walk.
template <class T> static sp_json_walk walk_of(const sp_json_value &value)
{
    sp_json_walk walk = {};
    T container;
    if (element_of(value).get(container) == simdjson::SUCCESS) {
        keep(walk.next, container.begin());
        keep(walk.end, container.end());
    }
    return walk;
}

sp_json_walk sp_json_elements(sp_json_value array)
{
    return walk_of<dom::array>(array);
}

sp_json_walk sp_json_members(sp_json_value object)
{
    return walk_of<dom::object>(object);
}

static bool is_at_end(const sp_json_walk &walk)
{
    return std::memcmp(walk.next, walk.end, sizeof walk.next) == 0;
}

bool sp_json_next_element(sp_json_walk *walk, sp_json_value *element)
{
    if (is_at_end(*walk))
        return false;
    auto iterator = restored<dom::array::iterator>(walk->next);
    keep(element->place, *iterator);
    keep(walk->next, ++iterator);
    return true;
}

bool sp_json_next_member(sp_json_walk *walk, sp_json_text *key, sp_json_value *value)
{
    if (is_at_end(*walk))
        return false;
    auto iterator = restored<dom::object::iterator>(walk->next);
    std::string_view text = iterator.key();
    *key = {text.data(), text.size()};
    keep(value->place, iterator.value());
    keep(walk->next, ++iterator);
    return true;
}
