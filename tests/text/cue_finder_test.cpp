// The one-pass search for the vocabulary against the plain definition of what it finds.
#include "text/cue_finder.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

using namespace flashgate;

namespace {

using Found = std::map<std::string, std::size_t>;  // phrase and class, and where it first stands

const CueFinder& finder() {
  static const CueFinder built(detail::english_task_cues(), detail::chinese_task_cues());
  return built;
}

std::string key_of(const detail::TaskCue& cue) {
  return std::string(cue.phrase) + '/' + std::string(name(cue.task));
}

Found find(std::string_view text) {
  Found found;
  finder().find(FoldedText(text), [&](const detail::TaskCue& cue, std::size_t at) {
    CHECK(found.emplace(key_of(cue), at).second);
  });
  return found;
}

bool is_letter(const std::string& text, std::size_t at) {
  return at < text.size() && text[at] >= 'a' && text[at] <= 'z';
}

Found find_plainly(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  Found found;
  for (const auto cues : {detail::english_task_cues(), detail::chinese_task_cues()}) {
    for (const detail::TaskCue& cue : cues) {
      const std::string phrase(cue.phrase);
      const bool ends_word = phrase.size() <= 4 && is_letter(phrase, phrase.size() - 1);
      for (auto at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
        if (is_letter(text, at) && at > 0 && is_letter(text, at - 1)) continue;
        if (ends_word && is_letter(text, at + phrase.size())) continue;
        found.emplace(key_of(cue), at);
        break;
      }
    }
  }
  return found;
}

std::string pool_of_texts() {
  std::ifstream file(FLASHGATE_SOURCE_DIR "/tests/data/text/labelled.jsonl");
  std::string pool;
  for (std::string line; std::getline(file, line);) {
    pool += nlohmann::json::parse(line).at("text").get<std::string>() + '\n';
  }
  return pool;
}

}  // namespace

TEST_CASE("every phrase of the vocabulary is found where it stands, in any case") {
  std::size_t cues = 0;
  for (const auto half : {detail::english_task_cues(), detail::chinese_task_cues()}) {
    for (const detail::TaskCue& cue : half) {
      ++cues;
      CAPTURE(cue.phrase);
      REQUIRE(cue.phrase.size() >= 2);
      CHECK(may_start_phrase(static_cast<unsigned char>(cue.phrase[0])));
      std::string text = "1 " + std::string(cue.phrase);
      CHECK(find(text)[key_of(cue)] == 2);
      std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
      CHECK(find(text)[key_of(cue)] == 2);
    }
  }
  CHECK(cues <= CueFinder::cues_max);
}

TEST_CASE("the search finds what the definition says, on pieces of texts and on damaged ones") {
  const std::string pool = pool_of_texts();
  std::mt19937 dice(20261201);
  for (int round = 0; round < 600; ++round) {
    std::string text = pool.substr(dice() % pool.size(), dice() % 400);
    for (int i = 0; i < round % 7 && !text.empty(); ++i) {
      text[dice() % text.size()] = static_cast<char>(dice());
    }
    CAPTURE(round, text);
    REQUIRE(find(text) == find_plainly(text));
  }
}

TEST_CASE("of a long text the head and the tail are read, and words do not grow across the cut") {
  const std::string filler(FoldedText::bytes_max * 2, 'x');
  CHECK(find("Translate" + filler + " translate").count("translate/translation") == 1);
  CHECK(find(filler + "translate" + filler).empty());
  std::string text(scanned_head_bytes + 100, '.');
  text.replace(scanned_head_bytes - 5, 9, "translate");
  text += std::string(scanned_tail_bytes, '.');
  CHECK(find(text).empty());
  const std::string whole = std::string(scanned_head_bytes + scanned_tail_bytes - 9, '.');
  CHECK(find(whole + "translate").at("translate/translation") == whole.size());
}
