// The bytes of a precompiled charsmap with some keys, each node of its trie in a block of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

inline std::string made_charsmap(const std::map<std::string, std::string>& replacements) {
  std::map<std::string, std::uint32_t> base_of{{"", 256}};  // of the children, by what leads there
  for (const auto& [key, text] : replacements) {
    for (std::size_t size = 1; size <= key.size(); ++size) {
      base_of.emplace(key.substr(0, size), static_cast<std::uint32_t>(256 * (base_of.size() + 1)));
    }
  }
  std::vector<std::uint32_t> array(256 * (base_of.size() + 1));
  std::string texts;
  array[0] = 256U << 10;
  for (const auto& [path, base] : base_of) {
    if (path.empty()) continue;
    const auto label = static_cast<unsigned char>(path.back());
    const std::uint32_t at = base_of.at(path.substr(0, path.size() - 1)) ^ label;
    const auto replacement = replacements.find(path);
    const bool ends = replacement != replacements.end();
    array[at] = label | (ends ? 0x100U : 0U) | (at ^ base) << 10;
    if (!ends) continue;
    array[base] = static_cast<std::uint32_t>(texts.size()) | 0x80000000U;
    texts += replacement->second + '\0';
  }
  std::string bytes;
  const auto add = [&](std::uint32_t number) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i));
  };
  add(static_cast<std::uint32_t>(array.size() * 4));
  for (const std::uint32_t entry : array) add(entry);
  return bytes + texts;
}
