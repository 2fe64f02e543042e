#pragma once
// The one table of everything the configuration file may say: name, type, bounds, default, meaning.
// check.cpp refuses what is not in it, schema.cpp turns it into JSON Schema, so that neither can
// drift from the other. Constant data, any thread.
#include <string_view>
#include <vector>

namespace flashgate {

enum class ValueType {
  text,
  flag,      // true or false
  count,     // 16000, 16k
  number,    // 0.25
  duration,  // 5s; bounds in seconds
  size,      // 32MiB; bounds in bytes
  rate,      // 600/min; bounds per minute
  share,     // 20%; bounds 0 … 1
  range,     // '>16000', '<2000', '1000..4000'
  url,
  address,   // host:port
  variable,  // the name of an environment variable
  choice,    // one of `choices`
  texts,     // a list of texts, or one text; of `choices` where there are some
  urls,      // a list of URLs
  text_map,  // names and texts
  section,   // `inner`
  sections,  // any names, each an `inner`
  section_list
};

struct Section;

struct Key {
  std::string_view name{};
  ValueType type = ValueType::text;
  std::string_view about{};        // one or two sentences for people
  std::string_view standard{};     // the default as it would be written; empty: none
  const Section* inner = nullptr;  // for sections; on other types: a map is accepted as well
  double least = 0;
  double most = 1e15;
  std::vector<std::string_view> choices{};
  bool required = false;
  bool off_allowed = false;   // durations: `off` and 0
  bool path_allowed = false;  // choices: a path below /v1/ as well
};

struct Section {
  std::vector<Key> keys{};
  std::vector<std::string_view> not_yet{};  // planned; refused, because a setting must do something

  const Key* find(std::string_view name) const;
};

/// The file's top level.
const Section& root_section();
/// One entry of `profiles`.
const Section& profile_section();

}  // namespace flashgate
