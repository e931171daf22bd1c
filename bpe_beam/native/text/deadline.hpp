// The CPU time that one text may take. A tokenizer file may describe steps so slow that a text
// never ends, by mistake or on purpose. Waiting does not count: a valid text must not fail because
// the machine is busy, or because its thread waits for a lock.
#pragma once

#include <cstddef>
#include <ctime>
#include <limits>

namespace bpe_beam {

/// A text took more CPU time than allowed.
struct TextTimeout {
  double seconds;  // The limit.
};

/// The CPU seconds that the calling thread has used so far, without waiting.
inline double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The deadline of the text that a thread processes, in the thread's CPU time. Code that may take
/// long reports its work.
class Deadline {
  static constexpr std::size_t kBetweenLooks = std::size_t{1} << 20;

  struct State {
    bool set = false;
    bool started =
        false;  // At the first check, because reading the clock costs more than a short text.
    double seconds = 0;
    double end = 0;
    std::size_t steps_left = kBetweenLooks;
  };

 public:
  /// Sets the thread's deadline for as long as the scope lives, unless one is set already.
  class Scope {
   public:
    explicit Scope(double seconds) : sets_(!state().set) {
      if (!sets_) return;
      state() = {true, false, seconds, 0, kBetweenLooks};
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (sets_) state().set = false;
    }

   private:
    bool sets_;
  };

  /// Stops the clock for as long as the scope lives, because the thread's work is not for the text.
  class Pause {
   public:
    Pause() : paused_(state()), since_(thread_seconds()) { state().set = false; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause() {
      paused_.end += thread_seconds() - since_;
      state() = paused_;
    }

   private:
    State paused_;
    double since_;
  };

  /// The remaining CPU seconds, at least 0; infinity if no deadline is set.
  static double left() {
    State& now = state();
    if (!now.set) return std::numeric_limits<double>::infinity();
    const double used = thread_seconds();
    if (!now.started) {
      now.started = true;
      now.end = used + now.seconds;
    }
    return now.end > used ? now.end - used : 0;
  }

  /// Throws TextTimeout if the time is over.
  static void check() {
    if (left() <= 0) throw TextTimeout{state().seconds};
  }

  /// Reports that some steps (of about a nanosecond) were done, and sometimes checks the clock.
  static void spend(std::size_t steps) {
    State& now = state();
    if (steps < now.steps_left) {
      now.steps_left -= steps;
      return;
    }
    now.steps_left = kBetweenLooks;
    check();
  }

 private:
  static State& state() {
    static thread_local State state;
    return state;
  }
};

}  // namespace bpe_beam
