// Texts to ids: a pipeline splits a text into words, a model encodes each word as tokens.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/id_buffer.hpp"
#include "encode/seams.hpp"
#include "encode/word_cache.hpp"
#include "encode/word_model.hpp"
#include "scan/class_masks.hpp"
#include "scan/pipeline.hpp"
#include "text/word_key.hpp"

namespace bpe_beam {

/// The mutable state of encoding; each thread has its own.
struct EncodingState {
  /// `cache_bytes`: the maximum memory of the cache.
  explicit EncodingState(std::size_t cache_bytes) : cache(cache_bytes / 2, cache_bytes / 2) {}

  PipelineState pipeline;
  WordCache cache;
  ModelState model;
};

/// Ids, and the offsets of each id in the original text, in bytes.
struct IdsWithOffsets {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> added;  // which of them are added tokens that occur in the text
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
};

class TextEncoder {
 public:
  TextEncoder(std::shared_ptr<const Pipeline> pipeline, std::shared_ptr<const WordModel> model)
      : pipeline_(std::move(pipeline)), model_(std::move(model)) {}

  /// Appends the ids of a text; `allowed`: see AddedTokens::extract. Throws MissingSymbol with its
  /// offsets in the original text; `out` then has the ids of the words before it.
  void encode(std::string_view text, std::span<const std::uint32_t> allowed, EncodingState& state,
              IdBuffer& out) const {
    const std::size_t before = out.size();
    try {
      CachingSink sink{*model_, model_->seams(), state, out};
      pipeline_->run(text, allowed, false, state.pipeline, sink);
    } catch (const MissingSymbol&) {
      // An error's offsets in the original text, and the ids of whole words only, need a second
      // run.
      out.cut(before);
      IdsWithOffsets placed;
      try {
        encode_with_offsets(text, allowed, state, placed);
      } catch (const MissingSymbol&) {
        out.append(placed.ids);
        throw;
      }
      throw;
    }
  }

  /// Appends the ids of words i = data[bounds[i]:bounds[i + 1]], none of them empty, each a whole
  /// word of the model, and calls `on_word()` after the ids of each word. The words should all be
  /// different: only their parts are cached. Throws MissingSymbol.
  template <class OnWord>
  void encode_words(std::string_view data, std::span<const std::int64_t> bounds,
                    EncodingState& state, IdBuffer& out, OnWord&& on_word) const {
    CachingSink sink{*model_, model_->seams(), state, out};
    if (sink.seams == nullptr || model_->caches_parts()) {
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        sink.once(data.substr(static_cast<std::size_t>(bounds[i]), size_at(bounds, i)));
        on_word();
      }
      return;
    }
    typename CachingSink::NewWords words;
    words.text = data;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto begin = static_cast<std::size_t>(bounds[i]);
      sink.add_new({begin, begin + size_at(bounds, i)}, words, on_word);
    }
    sink.write_new_words(words, on_word);
  }

  /// Appends the ids of a text and their offsets. Throws MissingSymbol as above.
  void encode_with_offsets(std::string_view text, std::span<const std::uint32_t> allowed,
                           EncodingState& state, IdsWithOffsets& out) const {
    OffsetsSink sink{*model_, state.model, out};
    pipeline_->run(text, allowed, true, state.pipeline, sink);
  }

 private:
  /// Writes the ids of words to `out`, from the cache or from the model.
  struct CachingSink {
    const WordModel& model;
    const Seams* seams;  // null if there are none
    EncodingState& state;
    IdBuffer& out;

    void words(const TextView& text, std::span<const Word> words) {
      Batches all(*this, text.bytes);
      for (const Word& word : words) all.add(word);
      all.flush();
    }

    /// Takes the words of a text, which must live as long.
    auto batches(const TextView& text) { return Batches(*this, text.bytes); }

    void added(std::uint32_t id, const TextView&) { out.push_back(id); }

    /// Appends the ids of a word that is not expected to occur again.
    void once(std::string_view word) {
      if (model.caches_parts()) {
        model.encode_cached(word, state.cache, state.model, out);
      } else {
        write_new(word, false);
      }
    }

    /// Parts of different words, whose slots are being fetched from memory.
    struct NewWords {
      std::string_view text;
      std::size_t size = 0;
      std::array<Word, Pipeline::kWords> parts;
      std::array<WordCache::Entry, Pipeline::kWords> entries;
      std::array<std::uint32_t, Pipeline::kWords>
          ids;                                   // of a part that is a token; kNoId: look it up
      std::array<bool, Pipeline::kWords> alone;  // whether it is a whole word, not cached
      std::array<bool, Pipeline::kWords> last;   // whether it is the last of its word
    };

    /// Adds a word that is not expected to occur again; calls `on_word()` after each word written.
    template <class OnWord>
    void add_new(const Word& word, NewWords& batch, OnWord&& on_word) {
      const std::string_view bytes = bytes_of_word(batch.text, word);
      const auto push = [&](const Word& part, std::uint32_t id, bool alone, bool last) {
        if (batch.size == Pipeline::kWords) write_new_words(batch, on_word);
        const std::size_t i = batch.size++;
        batch.parts[i] = part;
        batch.ids[i] = id;
        batch.alone[i] = alone;
        batch.last[i] = last;
        if (alone) return;
        batch.entries[i] = state.cache.entry_of(bytes_of_word(batch.text, part), WordKind::kPart,
                                                batch.text.size() - part.begin);
        state.cache.prefetch(batch.entries[i]);
      };
      if (const std::uint32_t whole = model.whole_word(bytes); whole != kNoId) {
        return push(word, whole, true, true);
      }
      for_each_part(bytes, [&](std::size_t begin, std::size_t end) {
        push({word.begin + begin, word.begin + end}, kNoId, end - begin == bytes.size(),
             end == bytes.size());
      });
    }

    /// Appends the ids of the parts, and empties the batch.
    template <class OnWord>
    void write_new_words(NewWords& batch, OnWord&& on_word) {
      for (std::size_t i = 0; i < batch.size; ++i) {
        const std::string_view part = bytes_of_word(batch.text, batch.parts[i]);
        if (batch.ids[i] != kNoId) {
          out.push_back(batch.ids[i]);
        } else if (batch.alone[i]) {
          model.encode_part(part, state.model);
          out.append(state.model.ids);
        } else {
          write_other(part, batch.entries[i]);
        }
        if (batch.last[i]) on_word();
      }
      batch.size = 0;
    }

   private:
    /// Words and parts of words whose slots are being fetched from memory.
    struct Batch {
      /// A batch is written when it has so many.
      static constexpr std::size_t kFull = Pipeline::kWords;

      struct Item {
        WordCache::Entry entry;
        const char* word;
      };

      std::string_view text;
      std::size_t size = 0;
      std::array<Item, kFull + kBlock> items;
    };

    /// Takes words from a pipeline, and writes their ids in batches.
    class Batches {
     public:
      Batches(CachingSink& sink, std::string_view text)
          : sink_(sink), caches_parts_(sink.model.caches_parts()) {
        batch_.text = text;
      }

      void add(const Word& word) {
        if (caches_parts_) {
          sink_.once(bytes_of_word(batch_.text, word));
        } else {
          sink_.add_word(word, batch_);
        }
      }

      /// See WordBatches.
      std::size_t add_block(std::size_t begin, std::uint64_t starts) {
        const std::size_t block = begin;
        // Keys of words near the text's end are made with care.
        if (caches_parts_ || batch_.text.size() - block < kBlock + WordKey::kReadable) {
          for (; starts != 0; starts &= starts - 1) {
            const std::size_t end = block + static_cast<std::size_t>(std::countr_zero(starts));
            add({begin, end});
            begin = end;
          }
          return begin;
        }
        if (batch_.size >= Batch::kFull) sink_.write(batch_);
        const char* const text = batch_.text.data();
        WordCache::Finder finder = sink_.state.cache.finder();
        auto* item = batch_.items.data() + batch_.size;
        for (; starts != 0; starts &= starts - 1) {
          const std::size_t end = block + static_cast<std::size_t>(std::countr_zero(starts));
          const std::size_t size = end - begin;
          if (size > WordKey::kMaxInline) [[unlikely]] {
            batch_.size = static_cast<std::size_t>(item - batch_.items.data());
            sink_.add_word({begin, end}, batch_);
            item = batch_.items.data() + batch_.size;
            finder = sink_.state.cache.finder();
          } else {
            item->word = text + begin;
            item->entry = finder.entry_of(item->word, size);
            finder.prefetch(item->entry);
            ++item;
          }
          begin = end;
        }
        batch_.size = static_cast<std::size_t>(item - batch_.items.data());
        return begin;
      }

      void flush() { sink_.write(batch_); }

     private:
      CachingSink& sink_;
      bool caches_parts_;
      Batch batch_;
    };

    void add_word(const Word& word, Batch& batch) {
      if (word.end - word.begin <= WordKey::kMaxInline) [[likely]] {
        add(word, WordKind::kWord, batch);
      } else {
        add_long(word, batch);
      }
    }

    void add(const Word& word, WordKind kind, Batch& batch) {
      if (batch.size >= Batch::kFull) write(batch);
      const std::string_view bytes = bytes_of_word(batch.text, word);
      auto& item = batch.items[batch.size++];
      item = {state.cache.entry_of(bytes, kind, batch.text.size() - word.begin), bytes.data()};
      state.cache.prefetch(item.entry);
    }

    /// Adds a word of more than 15 bytes. With seams its parts are cached, because they occur more
    /// often than the word. A word that ends in a run, such as indentation, may have as many parts
    /// as bytes, and often occurs again as a whole.
    void add_long(const Word& word, Batch& batch) {
      const std::string_view bytes = bytes_of_word(batch.text, word);
      if (seams == nullptr || ends_in_run(bytes) || model.whole_word(bytes) != kNoId) {
        add(word, WordKind::kWord, batch);
      } else {
        for_each_part(bytes, [&](std::size_t begin, std::size_t end) {
          add({word.begin + begin, word.begin + end}, WordKind::kPart, batch);
        });
      }
    }

    /// Returns whether the last nine bytes of a word of more than 15 bytes are equal.
    static bool ends_in_run(std::string_view word) {
      const char* const last = word.data() + word.size() - 8;
      return load_up_to_8(last, 8) == load_up_to_8(last - 1, 8);
    }

    /// Calls `use(begin, end)` for each part of a word between seams.
    template <class Use>
    void for_each_part(std::string_view word, Use&& use) {
      std::size_t begin = 0;
      for (std::size_t at = 1; at < word.size(); ++at) {
        // A boundary within a character is not looked up.
        if ((word[at] & 0xC0) == 0x80 || seams->may_cross(word, at)) continue;
        use(begin, at);
        begin = at;
      }
      use(begin, word.size());
    }

    /// Appends the ids of a batch, and empties it.
    void write(Batch& batch) {
      // Room for all that slots may have, so that a hit writes without asking.
      std::uint32_t* room = out.room(batch.size * WordCache::kWrittenIds);
      WordCache::Finder finder = state.cache.finder();
      for (std::size_t i = 0, size = batch.size; i < size; ++i) {
        const auto& [entry, word] = batch.items[i];
        const WordCache::Slot& slot = finder.first_slot(entry);
        if (slot.contains(entry) && slot.has_few_ids()) [[likely]] {
          slot.write_few_ids(room);
          room += slot.count();
          continue;
        }
        if (slot.contains(entry) && slot.has_ids()) {
          slot.write_ids(room);
          room += slot.count();
          continue;
        }
        out.written_to(room);
        write_other({word, entry.size()}, entry);
        room = out.room((size - 1 - i) * WordCache::kWrittenIds);
        finder = state.cache.finder();
      }
      out.written_to(room);
      batch.size = 0;
    }

    /// Appends the ids of a word or part, if the first slot of its set does not have them.
    [[gnu::noinline]] void write_other(std::string_view word, const WordCache::Entry& entry) {
      const WordCache::Slot* const slot = state.cache.find(entry);
      if (slot == nullptr || !slot->has_ids()) return write_missed(word, entry, slot);
      std::uint32_t* const room = out.room(WordCache::kWrittenIds);
      slot->write_ids(room);
      out.written_to(room + slot->count());
    }

    /// Appends the ids of a word or part that is not in a slot of the cache, and caches them.
    void write_missed(std::string_view word, const WordCache::Entry& entry,
                      const WordCache::Slot* slot) {
      if (slot != nullptr) {
        if (const auto ids = state.cache.find_in_ring(*slot, word)) return out.append(*ids);
      }
      const std::size_t before = out.size();
      write_new(word, entry.is_part());
      state.cache.put(entry, word, out.ids().subspan(before));
    }

    /// Appends the ids of a word, or of a part, that is not in the cache.
    void write_new(std::string_view word, bool is_part) {
      const std::uint32_t whole = is_part ? kNoId : model.whole_word(word);
      if (whole != kNoId) {
        out.push_back(whole);
      } else if (seams == nullptr) {
        model.encode(word, false, state.model);
        out.append(state.model.ids);
      } else {
        write_parts(word, is_part);
      }
    }

    /// Appends the ids of a word that is not one token as a whole; of a part if `is_part`.
    void write_parts(std::string_view word, bool is_part) {
      for_each_part(word, [&](std::size_t begin, std::size_t end) {
        const std::string_view part = word.substr(begin, end - begin);
        if (is_part || part.size() == word.size()) {
          model.encode_part(part, state.model);
          out.append(state.model.ids);
          return;
        }
        write_other(part, state.cache.entry_of(part, WordKind::kPart, word.size() - begin));
      });
    }
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
        std::size_t at = 0, end = 0;
        for (std::size_t i = 0; i < state.ids.size(); ++i) {
          // At the word's end is no character whose origin an empty range could have.
          const bool after_all = state.sizes[i] == 0 && end == word_text.bytes.size();
          if (state.sizes[i] != ModelState::kSameBytes && !after_all) {
            at = end;
            end += state.sizes[i];
          }
          if (at < end) {
            push(state.ids[i], origin_of(word_text.sub(at, end)));
          } else {  // of a prefix: before its character
            const std::size_t begin = word_text.origins[at].begin;
            push(state.ids[i], {begin, begin});
          }
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

  static std::size_t size_at(std::span<const std::int64_t> bounds, std::size_t i) {
    return static_cast<std::size_t>(bounds[i + 1] - bounds[i]);
  }

  static std::string_view bytes_of_word(std::string_view text, const Word& word) {
    return {text.data() + word.begin, word.end - word.begin};  // substr would check
  }

  std::shared_ptr<const Pipeline> pipeline_;
  std::shared_ptr<const WordModel> model_;
};

}  // namespace bpe_beam
