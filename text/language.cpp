#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "text/task_class.hpp"
#include "text/wide_shape.hpp"

namespace flashgate {

namespace {

constexpr std::size_t read_bytes_max = 4 * 1024;

constexpr std::string_view language_names[] = {
    "other", "english", "chinese", "japanese", "korean", "russian", "arabic",     "thai",
    "hindi", "greek",   "hebrew",  "german",   "french", "spanish", "portuguese", "italian",
};
static_assert(std::size(language_names) == language_count);

/// Words that are common in one language of Latin script and rare in the others listed.
struct CommonWords {
  Language language;
  std::string_view words;  // each between spaces
};
constexpr CommonWords common_words[] = {
    {Language::english, " the and of to is in that it for you with this are what how please my "},
    {Language::german, " der die und das ist nicht ein eine ich zu den mit auf von wie bitte "},
    {Language::french, " le la les et des est une je pas que vous dans pour du au sur avec "},
    {Language::spanish, " el los las y es una que por para con del como está al su "},
    {Language::portuguese, " o os e é uma não que para com do da em você são ao "},
    {Language::italian, " il gli e è una che non per con di della sono le del mi "},
};

struct Script {
  std::uint32_t first;
  std::uint32_t last;
  Language language;
};
constexpr Script scripts[] = {
    {0x0370, 0x03FF, Language::greek},    {0x0400, 0x052F, Language::russian},
    {0x0590, 0x05FF, Language::hebrew},   {0x0600, 0x06FF, Language::arabic},
    {0x0900, 0x097F, Language::hindi},    {0x0E00, 0x0E7F, Language::thai},
    {0x3041, 0x30FF, Language::japanese}, {0x3400, 0x9FFF, Language::chinese},
    {0xAC00, 0xD7A3, Language::korean},
};

using Counts = std::array<std::size_t, language_count>;

std::size_t& count_of(Counts& counts, Language language) {
  return counts[static_cast<std::size_t>(language)];
}

bool is_latin_byte(unsigned char byte) {
  // Bytes beyond ASCII belong to the word, so that "está" stays whole.
  return (byte | 0x20U) - 'a' < 26U || byte >= 0x80;
}

Language latin_language(std::string_view text) {
  Counts hits{};
  std::string word;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(at < text.size() ? text[at] : ' ');
    if (is_latin_byte(byte)) {
      word += static_cast<char>(byte < 0x80 ? byte | 0x20U : byte);
      continue;
    }
    if (!word.empty() && word.size() <= 6) {
      const std::string spaced = ' ' + word + ' ';
      for (const auto& row : common_words) {
        if (row.words.find(spaced) != std::string_view::npos) ++count_of(hits, row.language);
      }
    }
    word.clear();
  }
  const auto best = std::max_element(hits.begin(), hits.end());
  // Text without any such word is most often English labels, names or code.
  return *best == 0 ? Language::english : static_cast<Language>(best - hits.begin());
}

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
  text = text.substr(0, read_bytes_max);
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = at + text.size();
  Counts letters{};
  std::size_t latin = 0;
  while (at < end) {
    const auto here = detail::decode_at(at, end);
    at += std::max<std::size_t>(here.bytes, 1);
    latin += here.value < 0x80 ? (here.value | 0x20U) - 'a' < 26U : here.value - 0xC0U < 0x190U;
    for (const Script& script : scripts) {
      if (here.value >= script.first && here.value <= script.last) {
        ++count_of(letters, script.language);
      }
    }
  }
  // Japanese is written with Han characters too; kana among them tell it from Chinese.
  if (count_of(letters, Language::japanese) * 8 > count_of(letters, Language::chinese)) {
    count_of(letters, Language::japanese) += count_of(letters, Language::chinese);
    count_of(letters, Language::chinese) = 0;
  }
  const auto best = std::max_element(letters.begin(), letters.end());
  // One letter of these scripts says about as much as four Latin ones.
  if (*best * 4 > latin) return static_cast<Language>(best - letters.begin());
  return latin > 0 ? latin_language(text) : Language::other;
}

}  // namespace flashgate
