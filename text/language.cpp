#include <iterator>

#include "text/task_class.hpp"

namespace flashgate {

namespace {
constexpr std::string_view language_names[] = {
    "other", "english", "chinese", "japanese", "korean", "russian", "arabic",     "thai",
    "hindi", "greek",   "hebrew",  "german",   "french", "spanish", "portuguese", "italian",
};
static_assert(std::size(language_names) == language_count);
}  // namespace

std::string_view name(Language language) {
  const auto index = static_cast<std::size_t>(language);
  return index < std::size(language_names) ? language_names[index] : "unknown";
}

std::optional<Language> parse_language(std::string_view text) {
  for (std::size_t i = 0; i < std::size(language_names); ++i) {
    if (language_names[i] == text) return static_cast<Language>(i);
  }
  return std::nullopt;
}

Language detect_language(std::string_view text) {
  std::size_t letters = 0;
  std::size_t wide = 0;
  for (const char c : text.substr(0, 2 * scanned_bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    letters += (byte | 0x20U) >= 'a' && (byte | 0x20U) <= 'z';
    wide += byte >= 0xE4 && byte <= 0xE9;
  }
  if (wide * 3 > letters && wide > 0) return Language::chinese;
  return letters > 0 ? Language::english : Language::other;
}

}  // namespace flashgate
