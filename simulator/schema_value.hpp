#pragma once
// A JSON value that fits a JSON Schema of the kind used for tools and structured output: types,
// enum, const, properties, items, bounds, anyOf/oneOf/allOf, local $ref, common formats. Bounded
// work on hostile schemas (null where it gives up). Pure, any thread.
#include <cstdint>
#include <nlohmann/json.hpp>

namespace flashgate {

using Json = nlohmann::ordered_json;

/// Strings of free text are made from `seed`; the same schema and seed give the same value.
Json value_for_schema(const Json& schema, std::uint64_t seed);

}  // namespace flashgate
