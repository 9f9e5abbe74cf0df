// Tidegate in Java 22 and later, by the foreign function and memory API.
//
//     try (var limiter = new Tidegate("5/10s window, 20/min")) {
//       var rule = limiter.rule("default");
//       if (rule.hit("alice", 1).allowed()) { ... }
//     }
//
// A hit that fails leaves the reason in a tg_error of its own. Other calls ask for it afterwards: a
// virtual thread changes its carrier only where it blocks, and so not between these two calls.
import static java.lang.foreign.ValueLayout.*;

import java.lang.foreign.*;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

public final class Tidegate implements AutoCloseable {
  // Where the fields of a tg_decision and of a tg_error are: include/tidegate.h, ABI version 3.
  private static final long DECISION_SIZE = 504, ALLOWED = 4, REASON = 24, REMAINING = 56;
  private static final long RETRY_AFTER = 64, ERROR_SIZE = 1024, ERROR_TEXT = 16;

  private static final SymbolLookup LIBRARY =
      SymbolLookup.libraryLookup(System.getProperty("tidegate.library"), Arena.global());
  private static final MethodHandle NEW =
      call("tg_limiter_new", JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle FREE = call("tg_limiter_free", null, ADDRESS);
  private static final MethodHandle RULE = call("tg_rule_get", JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle LAST = call("tg_last_error_copy", JAVA_INT, ADDRESS);
  private static final MethodHandle OLDEST = call("tg_abi_version_oldest", JAVA_INT);
  private static final MethodHandle NEWEST = call("tg_abi_version", JAVA_INT);
  private static final MethodHandle HIT =
      call("tg_hit_bytes", JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS);

  private static MethodHandle call(String name, MemoryLayout result, MemoryLayout... arguments) {
    var type = result == null ? FunctionDescriptor.ofVoid(arguments)
        : FunctionDescriptor.of(result, arguments);
    return Linker.nativeLinker().downcallHandle(LIBRARY.find(name).orElseThrow(), type);
  }

  /** Why a call failed. A denial is an answer and no failure. */
  public static final class Failure extends RuntimeException {
    public final int status;

    Failure(int status, MemorySegment error) {
      super(error.getString(ERROR_TEXT));
      this.status = status;
    }
  }

  /** The answer to a hit. `retryAfterMillis` is below 0 where waiting never helps. */
  public record Decision(boolean allowed, String reason, long remaining, long retryAfterMillis) {}

  /** Good until its limiter is closed. Threads may share it. */
  public record Rule(MemorySegment raw) {
    public Decision hit(String key, long cost) {
      try (var arena = Arena.ofConfined()) {
        var bytes = key.getBytes(StandardCharsets.UTF_8);
        var data = arena.allocateFrom(JAVA_BYTE, bytes);
        var d = arena.allocate(DECISION_SIZE, 8);
        var error = arena.allocate(ERROR_SIZE, 8);
        int status = (int) HIT.invokeExact(raw, data, (long) bytes.length, cost, d, error);
        if (status != 0) throw new Failure(status, error);
        return new Decision(d.get(JAVA_BYTE, ALLOWED) == 1, text(d.get(ADDRESS, REASON)),
            d.get(JAVA_LONG, REMAINING), d.get(JAVA_LONG, RETRY_AFTER));
      } catch (Throwable thrown) {
        throw unchecked(thrown);
      }
    }
  }

  private MemorySegment raw;

  public Tidegate(String limits) {
    if (!fits()) throw new IllegalStateException("another libtidegate");
    raw = made((text, out) -> (int) NEW.invokeExact(text, MemorySegment.NULL, out), limits);
  }

  /** A rule by its name. Ask once and keep it. */
  public Rule rule(String name) {
    return new Rule(made((text, out) -> (int) RULE.invokeExact(raw, text, out), name));
  }

  /** Frees the limiter and its rules. No call may be under way. A second call does nothing. */
  @Override
  public void close() {
    var freed = raw;
    raw = MemorySegment.NULL;
    try {
      FREE.invokeExact(freed);
    } catch (Throwable thrown) {
      throw unchecked(thrown);
    }
  }

  private interface Maker {
    int make(MemorySegment text, MemorySegment out) throws Throwable;
  }

  /** What a call makes of a text and writes to an `out`. */
  private static MemorySegment made(Maker maker, String text) {
    try (var arena = Arena.ofConfined()) {
      // All memory first: between the call and LAST nothing may fail or change the thread.
      var out = arena.allocate(ADDRESS);
      var error = arena.allocate(ERROR_SIZE, 8);
      if (maker.make(arena.allocateFrom(text), out) == 0) return out.get(ADDRESS, 0);
      int unused = (int) LAST.invokeExact(error);
      throw new Failure(error.get(JAVA_INT, 0), error);
    } catch (Throwable thrown) {
      throw unchecked(thrown);
    }
  }

  /** Whether the library fits what is declared above. */
  private static boolean fits() {
    try {
      return (int) OLDEST.invokeExact() <= 3 && 3 <= (int) NEWEST.invokeExact();
    } catch (Throwable thrown) {
      throw unchecked(thrown);
    }
  }

  private static String text(MemorySegment pointer) {
    return pointer.address() == 0 ? null : pointer.reinterpret(Long.MAX_VALUE).getString(0);
  }

  private static RuntimeException unchecked(Throwable thrown) {
    return thrown instanceof RuntimeException known ? known : new IllegalStateException(thrown);
  }
}
