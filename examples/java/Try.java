// What Tidegate.java does, and that virtual threads are granted exactly what the rule has.
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

public final class Try {
  private static void check(boolean holds, Object what) {
    if (!holds) throw new AssertionError(what);
  }

  private static String failure(Runnable call) {
    try {
      call.run();
    } catch (Tidegate.Failure failure) {
      return failure.getMessage();
    }
    return "";
  }

  public static void main(String[] arguments) {
    try (var limiter = new Tidegate("3/min")) {
      var rule = limiter.rule("default");
      check(rule.hit("alice", 3).allowed() && rule.hit("", 1).allowed(), "allowed");
      var denied = rule.hit("alice", 1);
      check(!denied.allowed() && denied.reason().equals("3/min"), denied);
      check(denied.remaining() == 0 && denied.retryAfterMillis() <= 20_000, denied);
      check(rule.hit("alice", 4).retryAfterMillis() < 0, "never");
      check(failure(() -> limiter.rule("nobody")).contains("nobody"), "no such rule");
      check(failure(() -> new Tidegate("3/mni")).contains("mni"), "no such unit");
      limiter.close();
      check(failure(() -> limiter.rule("default")).contains("NULL"), "a closed limiter");
    }
    try (var limiter = new Tidegate("1000/h"); var other = new Tidegate("1 concurrent")) {
      var granted = new AtomicInteger();
      var rule = limiter.rule("default");
      var jobs = other.rule("default");
      try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
        for (int i = 0; i < 2000; i++) {
          threads.submit(() -> {
            if (rule.hit("alice", 1).allowed()) granted.incrementAndGet();
          });
        }
      }
      check(granted.get() == 1000, granted);
      check(failure(() -> jobs.hit("alice", 1)).contains("permit"), "a rule with permits");
    }
    System.out.println("java: 2000 virtual threads were granted 1000 hits");
  }
}
