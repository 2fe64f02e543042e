#pragma once
// What is wrong although every key is right by itself: names that mean two things, rules that
// nothing can reach, fallbacks that can't help, a gateway open to the world. Pure, any thread.
#include "config/findings.hpp"

namespace flashgate {

void cross_check(const YamlNode& root, const Config& config, Findings& findings);

/// True if every request that matches `later` matches `earlier` as well.
bool covers(const When& earlier, const When& later);

}  // namespace flashgate
