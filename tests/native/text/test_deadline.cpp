// Deadlines of a thread: set by the outermost scope, over when the thread has used the CPU time,
// gone with the scope.
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "check.hpp"
#include "text/deadline.hpp"

using namespace bpe_beam;

namespace {

bool is_over() {
  try {
    Deadline::check();
    return false;
  } catch (const TextTimeout&) {
    return true;
  }
}

/// Uses that much of this thread's CPU time.
void work(double seconds) {
  const double end = thread_seconds() + seconds;
  while (thread_seconds() < end) {
  }
}

}  // namespace

int main() {
  CHECK(std::isinf(Deadline::left()) && !is_over());
  Deadline::spend(std::numeric_limits<std::size_t>::max());
  {
    const Deadline::Scope endless(std::numeric_limits<double>::infinity());
    CHECK(Deadline::left() > 1e6 && !is_over());
  }
  {
    const Deadline::Scope outer(0);
    CHECK(is_over() && Deadline::left() == 0);
    {
      const Deadline::Scope inner(1000);  // the outer one stays
      CHECK(is_over());
    }
    CHECK(is_over());
    std::size_t spent = 0;
    try {
      for (;; ++spent) Deadline::spend(1000);
    } catch (const TextTimeout& timeout) {
      CHECK(timeout.seconds == 0);
    }
    CHECK(spent > 0 && spent < 10'000);
    {
      const Deadline::Pause pause;
      CHECK(!is_over() && std::isinf(Deadline::left()));
      const Deadline::Scope other(1000);
      CHECK(!is_over());
    }
    CHECK(is_over());
    std::thread([] { CHECK(!is_over() && std::isinf(Deadline::left())); }).join();
  }
  CHECK(!is_over() && std::isinf(Deadline::left()));
  {  // Work passes the deadline; sleep does not.
    const Deadline::Scope scope(0.05);
    CHECK(!is_over());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(!is_over());
    {
      const Deadline::Pause pause;
      work(0.1);
    }
    CHECK(!is_over());
    work(0.05);
    CHECK(is_over() && Deadline::left() == 0);
  }
  {  // Another thread's work is not this one's.
    const Deadline::Scope scope(0.05);
    CHECK(!is_over());
    std::thread([] { work(0.1); }).join();
    CHECK(!is_over());
  }
  {  // A pause before the first look.
    const Deadline::Scope scope(0.05);
    {
      const Deadline::Pause pause;
      work(0.1);
    }
    CHECK(!is_over());
  }
  {
    const Deadline::Pause without_a_deadline;
  }
  CHECK(!is_over() && std::isinf(Deadline::left()));
}
