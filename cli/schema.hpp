#pragma once
// `flashgate schema`: the JSON Schema of the configuration file, for editors.
namespace flashgate {

/// Writes the schema to standard output; always 0.
int run_schema();

}  // namespace flashgate
