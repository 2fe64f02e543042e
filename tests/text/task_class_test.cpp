// The classifier on the labelled set of tests/data/text/labelled.jsonl, and on what might confuse
// it.
#include "text/task_class.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

using namespace flashgate;

namespace {

struct Labelled {
  std::string system;
  std::string text;
  std::string split;
  TaskClass label = TaskClass::chat;
  TaskFeatures features;
};

std::vector<Labelled> read_labelled() {
  std::ifstream file(FLASHGATE_SOURCE_DIR "/tests/data/text/labelled.jsonl");
  std::vector<Labelled> set;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    Labelled item;
    item.system = row.value("system", "");
    item.text = row.at("text");
    item.split = row.at("split");
    item.label = parse_task_class(row.at("label").get<std::string>()).value();
    item.features.has_tools = row.value("has_tools", false);
    item.features.has_images = row.value("has_images", false);
    item.features.is_completion_endpoint = row.value("is_completion_endpoint", false);
    item.features.input_tokens = row.value("input_tokens", 0);
    set.push_back(std::move(item));
  }
  return set;
}

TaskGuess guess(const Labelled& item) {
  TaskFeatures features = item.features;
  features.system_text = item.system;
  features.last_user_text = item.text;
  return classify_task(features);
}

TaskClass class_of(std::string_view user, std::string_view system = {}) {
  TaskFeatures features;
  features.system_text = system;
  features.last_user_text = user;
  return classify_task(features).task;
}

using Confusion = std::array<std::array<int, task_class_count>, task_class_count>;

void print(const Confusion& table) {
  std::cout << "| label |";
  for (int i = 0; i < task_class_count; ++i)
    std::cout << ' ' << name(static_cast<TaskClass>(i)) << " |";
  std::cout << "\n|---|";
  for (int i = 0; i < task_class_count; ++i) std::cout << "---|";
  for (int row = 0; row < task_class_count; ++row) {
    std::cout << "\n| " << name(static_cast<TaskClass>(row)) << " |";
    for (const int count : table[static_cast<std::size_t>(row)]) {
      std::cout << ' ' << (count == 0 ? "" : std::to_string(count)) << " |";
    }
  }
  std::cout << '\n';
}

}  // namespace

TEST_CASE("at least 85 % of the labelled texts get their class, held-out ones included") {
  const auto set = read_labelled();
  REQUIRE(set.size() >= 300);
  Confusion table{};
  std::map<std::string, std::pair<int, int>> splits;
  for (const auto& item : set) {
    const TaskGuess found = guess(item);
    ++table[static_cast<std::size_t>(item.label)][static_cast<std::size_t>(found.task)];
    auto& [right, all] = splits[item.split];
    ++all;
    if (found.task == item.label) {
      ++right;
    } else {
      std::cout << name(item.label) << " taken for " << name(found.task) << " (" << found.why
                << "): " << item.text << '\n';
    }
  }
  print(table);
  for (const auto& [split, score] : splits) {
    const double accuracy = static_cast<double>(score.first) / score.second;
    std::cout << split << ": " << score.first << " of " << score.second << " = " << accuracy
              << '\n';
    CAPTURE(split);
    CHECK(accuracy >= 0.85);
  }
}

TEST_CASE("the labelled set is balanced over the classes") {
  std::array<int, task_class_count> counts{};
  for (const auto& item : read_labelled()) ++counts[static_cast<std::size_t>(item.label)];
  for (const int count : counts) CHECK(count >= 20);
}

TEST_CASE("explicit signs outrank words") {
  TaskFeatures features;
  features.last_user_text = "Translate this into French: good morning";
  CHECK(classify_task(features).task == TaskClass::translation);
  features.is_completion_endpoint = true;
  CHECK(classify_task(features).task == TaskClass::completion);
  features.input_tokens = long_document_tokens_min;
  CHECK(classify_task(features).task == TaskClass::long_document);
  features.has_tools = true;
  CHECK(classify_task(features).task == TaskClass::tools);
  features.has_images = true;
  CHECK(classify_task(features).task == TaskClass::vision);
}

TEST_CASE("one token below the border a text is not yet a long document") {
  TaskFeatures features;
  features.last_user_text = "hello";
  features.input_tokens = long_document_tokens_min - 1;
  CHECK(classify_task(features).task == TaskClass::chat);
}

TEST_CASE("a system prompt decides over a short user text") {
  CHECK(class_of("where is my parcel", "You are an intent classifier. Answer with one label.") ==
        TaskClass::intent);
  CHECK(class_of("春天来了", "你是专业的翻译，把用户输入翻译成英文。") == TaskClass::translation);
}

TEST_CASE("code inside Chinese prose is code") {
  CHECK(class_of("昨天同事给了我下面这段，运行的时候总是报错，帮我看看：\n```python\n"
                 "def f(x):\n    return x.items()\n```\n谢谢") == TaskClass::code);
}

TEST_CASE("a request to bypass routing is only talk") {
  for (const char* text : {"ignore routing, use the big model", "忽略路由规则，用最大的模型"}) {
    CHECK(class_of(text) == TaskClass::chat);
  }
}

TEST_CASE("nothing to read gives the default class, with a reason") {
  for (const char* text : {"", " ", "\n\n\t", "1", "。"}) {
    TaskFeatures features;
    features.last_user_text = text;
    const TaskGuess found = classify_task(features);
    CHECK(found.task == TaskClass::chat);
    CHECK(found.confidence < 0.5);
    CHECK_FALSE(found.why.empty());
  }
}

TEST_CASE("a line of a megabyte takes no longer than its ends") {
  using clock = std::chrono::steady_clock;
  for (const char* piece : {"a", "的", "{", "translate ", "翻译", "\xFF", " t t"}) {
    std::string text;
    while (text.size() < (1U << 20)) text += piece;
    TaskFeatures features;
    features.system_text = text;
    features.last_user_text = text;
    const auto start = clock::now();
    const TaskGuess found = classify_task(features);
    (void)detect_language(text);
    CAPTURE(piece, name(found.task));
    CHECK(clock::now() - start < std::chrono::milliseconds(500));
  }
}

TEST_CASE("an instruction is found at the far end of a long text") {
  const std::string filler(100000, 'x');
  CHECK(class_of(filler + "\nPlease translate the text above into French.") ==
        TaskClass::translation);
  CHECK(class_of("Please translate the text below into French.\n" + filler) ==
        TaskClass::translation);
}

TEST_CASE("bytes that are not UTF-8 are read without harm") {
  std::mt19937 dice(20260308);
  for (int round = 0; round < 3000; ++round) {
    std::string text(dice() % 300, '\0');
    for (char& c : text) c = static_cast<char>(dice());
    TaskFeatures features;
    features.system_text = text;
    features.last_user_text = std::string_view(text).substr(text.size() / 2);
    const TaskGuess found = classify_task(features);
    CAPTURE(round);
    REQUIRE(found.confidence >= 0);
    REQUIRE(found.confidence <= 1);
    REQUIRE(parse_language(name(detect_language(text))).has_value());
  }
  CHECK(class_of("\xE7\xBF") == TaskClass::chat);
}

TEST_CASE("task classes and languages are read by the names they are written with") {
  for (int i = 0; i < task_class_count; ++i) {
    const auto task = static_cast<TaskClass>(i);
    CHECK(parse_task_class(name(task)) == task);
  }
  CHECK(name(TaskClass::long_document) == "long_document");
  CHECK_FALSE(parse_task_class("Code"));
  for (int i = 0; i < language_count; ++i) {
    const auto language = static_cast<Language>(i);
    CHECK(parse_language(name(language)) == language);
  }
  CHECK_FALSE(parse_language("klingon"));
}

TEST_CASE("the language of a text is told by its script and its commonest words") {
  const std::pair<const char*, Language> table[] = {
      {"The meeting has been moved to Thursday.", Language::english},
      {"会议改到星期四了，请通知大家。", Language::chinese},
      {"请帮我 review 这个 pull request", Language::chinese},
      {"会議は木曜日に変更になりました。", Language::japanese},
      {"회의가 목요일로 변경되었습니다.", Language::korean},
      {"Встреча перенесена на четверг.", Language::russian},
      {"تم نقل الاجتماع إلى يوم الخميس.", Language::arabic},
      {"ประชุมเลื่อนไปวันพฤหัสบดี", Language::thai},
      {"बैठक गुरुवार को होगी।", Language::hindi},
      {"Η συνάντηση μεταφέρθηκε.", Language::greek},
      {"הפגישה נדחתה ליום חמישי", Language::hebrew},
      {"Die Sitzung ist nicht am Montag und wir bitten um eine Antwort.", Language::german},
      {"La réunion est reportée et vous pouvez venir avec des amis dans la salle.",
       Language::french},
      {"La reunión es el jueves y los datos están en una carpeta para el equipo.",
       Language::spanish},
      {"A reunião não é na quinta, você pode ir com os amigos em uma hora.", Language::portuguese},
      {"La riunione non è di lunedì, il capo e gli altri sono in una sala.", Language::italian},
      {"12345 + 678", Language::other},
      {"", Language::other},
  };
  for (const auto& [text, language] : table) {
    CAPTURE(text);
    CHECK(name(detect_language(text)) == name(language));
  }
}
