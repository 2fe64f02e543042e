// Forms: the first line of the input is the Content-Type, the rest the body.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/multipart.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flashgate;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view body = input.substr(line + 1);
  const MultipartFacts facts = read_multipart(input.substr(0, line), body);
  if (facts.ok != facts.why.empty()) std::abort();
  if (facts.has_model &&
      body.substr(facts.model_range.begin, facts.model_range.size()) != facts.model) {
    std::abort();
  }
  return 0;
}
