// Texts to ids: a pipeline splits a text into words, a model encodes each word as tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "scan/pipeline.hpp"
#include "encode/word_cache.hpp"
#include "text/word_key.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

/// The mutable state of encoding; each thread has its own.
struct EncodingState {
  explicit EncodingState(std::size_t cache_bytes) : cache(cache_bytes) {}

  PipelineState pipeline;
  WordCache cache;
  ModelState model;
};

/// Ids, and the offsets of each in the original text, in bytes.
struct IdsWithOffsets {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> added;  // which of them are added tokens that were found in the text
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
};

class TextEncoder {
 public:
  TextEncoder(std::shared_ptr<const Pipeline> pipeline, std::shared_ptr<const WordModel> model)
      : pipeline_(std::move(pipeline)), model_(std::move(model)) {}

  /// Appends the ids of a text; `allowed`: see AddedTokens::extract. Throws MissingSymbol with its
  /// offsets in the original text; `out` then has the ids before it.
  void encode(std::string_view text, std::span<const std::uint32_t> allowed, EncodingState& state,
              std::vector<std::uint32_t>& out) const {
    try {
      CachingSink sink{*model_, state, out};
      pipeline_->run(text, allowed, false, state.pipeline, sink);
    } catch (const MissingSymbol&) {
      // The offsets in the original text need a second run.
      IdsWithOffsets placed;
      encode_with_offsets(text, allowed, state, placed);
      throw;
    }
  }

  /// Appends the ids of a text and their offsets. Throws MissingSymbol as above.
  void encode_with_offsets(std::string_view text, std::span<const std::uint32_t> allowed,
                     EncodingState& state, IdsWithOffsets& out) const {
    OffsetsSink sink{*model_, state.model, out};
    pipeline_->run(text, allowed, true, state.pipeline, sink);
  }

 private:
  struct CachingSink {
    const WordModel& model;
    EncodingState& state;
    std::vector<std::uint32_t>& out;

    /// A word whose cache slot is on its way from memory.
    struct Pending {
      WordKey key;
      WordCache::Slot* slot;  // null for a long word
    };

    void words(const TextView& text, std::span<const Word> words) {
      std::array<Pending, Pipeline::kWords> pending;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = bytes_of_word(text, words[i]);
        pending[i].slot = nullptr;
        if (word.size() > WordKey::kMaxInline) [[unlikely]] continue;
        pending[i].key = pack_word(word, text.bytes.size() - words[i].begin);
        pending[i].slot = &state.cache.slot_of(pending[i].key);
        __builtin_prefetch(pending[i].slot);
      }
      // Room for all that the cache may hold, so that a hit writes without asking.
      std::size_t written = out.size();
      out.resize(written + words.size() * WordCache::kMaxIds);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const Pending& word = pending[i];
        if (word.slot != nullptr && word.slot->holds(word.key)) [[likely]] {
          // All four, whatever their number: cheaper than a loop whose end is hard to foresee.
          std::memcpy(out.data() + written, word.slot->ids.data(), sizeof word.slot->ids);
          written += word.slot->count();
          continue;
        }
        const std::vector<std::uint32_t>& ids = encode_missed(text, words[i], word, written);
        const std::size_t room = (words.size() - 1 - i) * WordCache::kMaxIds;
        out.resize(std::max(out.size(), written + ids.size() + room));
        std::copy(ids.begin(), ids.end(), out.begin() + static_cast<std::ptrdiff_t>(written));
        written += ids.size();
      }
      out.resize(written);
    }

    const std::vector<std::uint32_t>& encode_missed(const TextView& text, const Word& word,
                                                    const Pending& pending, std::size_t written) {
      try {
        return encode(bytes_of_word(text, word), pending);
      } catch (const MissingSymbol&) {
        out.resize(written);  // the ids before it, and no room for more
        throw;
      }
    }

    const std::vector<std::uint32_t>& encode(std::string_view word, const Pending& pending) {
      model.encode(word, false, state.model);
      const std::vector<std::uint32_t>& ids = state.model.ids;
      if (pending.slot != nullptr && ids.size() <= WordCache::kMaxIds) {
        pending.slot->put(pending.key, ids);
      }
      return ids;
    }

    void added(std::uint32_t id, const TextView&) { out.push_back(id); }
  };

  struct OffsetsSink {
    const WordModel& model;
    ModelState& state;
    IdsWithOffsets& out;

    void words(const TextView& text, std::span<const Word> words) {
      for (const Word& word : words) {
        const TextView word_text = text.sub(word.begin, word.end);
        try {
          model.encode(word_text.bytes, true, state);
        } catch (const MissingSymbol& missing) {
          const Origin origin = origin_of(word_text.sub(missing.begin, missing.end));
          throw MissingSymbol{origin.begin, origin.end};
        }
        std::size_t at = 0;
        for (std::size_t i = 0; i < state.ids.size(); ++i) {
          push(state.ids[i], origin_of(word_text.sub(at, at + state.sizes[i])));
          at += state.sizes[i];
        }
      }
    }

    void added(std::uint32_t id, const TextView& text) {
      out.added.push_back(out.ids.size());
      push(id, origin_of(text));
    }

    void push(std::uint32_t id, const Origin& origin) {
      out.ids.push_back(id);
      out.begins.push_back(origin.begin);
      out.ends.push_back(origin.end);
    }
  };

  static std::string_view bytes_of_word(const TextView& text, const Word& word) {
    return {text.bytes.data() + word.begin, word.end - word.begin};  // substr would check
  }

  std::shared_ptr<const Pipeline> pipeline_;
  std::shared_ptr<const WordModel> model_;
};

}  // namespace bpe_beam
