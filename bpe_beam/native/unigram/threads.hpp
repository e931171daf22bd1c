// Work on several threads, whose results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bpe_beam {

/// Calls `work(thread)` on some threads, and waits for all; this one is the first. Throws one of
/// their exceptions.
template <class Work>
void on_threads(std::size_t threads, Work&& work) {
  std::exception_ptr error;
  std::mutex mutex;
  const auto run = [&](std::size_t thread) noexcept {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  struct Pool {
    ~Pool() {
      for (std::thread& each : threads) each.join();
    }
    std::vector<std::thread> threads;
  };
  {
    Pool pool;
    pool.threads.reserve(threads);
    for (std::size_t thread = 1; thread < threads; ++thread) pool.threads.emplace_back(run, thread);
    run(0);
  }
  if (error) std::rethrow_exception(error);
}

/// The items [0, size), in slices that threads take in turns.
class SharedItems {
 public:
  SharedItems(std::size_t size, std::size_t slice) : size_(size), slice_(slice) {}

  /// Calls `use(item)` for each item of the slices that this thread gets.
  template <class Use>
  void take(Use&& use) {
    for (std::size_t begin; (begin = next_.fetch_add(slice_)) < size_;) {
      const std::size_t end = std::min(size_, begin + slice_);
      for (std::size_t item = begin; item < end; ++item) use(item);
    }
  }

 private:
  std::size_t size_;
  std::size_t slice_;
  std::atomic<std::size_t> next_ = 0;
};

/// Adds numbers from all items: `use(state, item)` adds to the `State` of a thread. Returns the
/// states of all threads.
template <class State, class Use>
std::vector<State> gather(std::size_t items, std::size_t slice, std::size_t threads, State empty,
                          Use&& use) {
  threads = std::clamp<std::size_t>(items / slice, 1, std::max<std::size_t>(threads, 1));
  std::vector<State> states(threads - 1, empty);
  states.push_back(std::move(empty));
  SharedItems shared(items, slice);
  on_threads(threads, [&](std::size_t thread) {
    shared.take([&](std::size_t item) { use(states[thread], item); });
  });
  return states;
}

}  // namespace bpe_beam
